import type { EventLog } from '../../engines/event-log.ts'
import type { Mail } from '../../engines/mailer.ts'
import { exportConfig } from '../../features/exports/export-config.ts'
import type { ExportRequested } from '../../features/exports/events.ts'
import { downloadPath, expiresAt } from '../../features/exports/download-link.ts'
import { EXPORT } from '../../features/exports/views.ts'
import { organization } from '../../features/identity/organizations/organization.ts'
import type { UserRow } from '../../features/identity/users/user.ts'
import { USERS_TABLE } from '../../features/identity/views.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { RowChange } from '../../kernel/table.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { normalizeKey } from '../../kit/commands/unique-claim.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { jobDecider } from '../../kit/jobs/life.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { owed, type OwedMailRow } from './owed-mails.ts'
import { renderMail } from './render-mail.ts'

/** Time for which a mail is worth sending: its link is valid longer. */
const WORTH_MS = 2 * 86_400_000

/** The mails that an export owes once its file exists. */
export const exportMailsOwed = async (
  log: EventLog,
  { type, stream, revision, loggedAt: at, id }: RecordedEvent,
  now: number,
): Promise<RowChange[]> => {
  if (type !== EXPORT.types.finished || at + WORTH_MS <= now) return []
  const emails = (await requestedIn(log, stream))?.emails ?? []
  return emails.map((_, recipient) =>
    owed(idFrom('mail', id, recipient), {
      stream,
      revision,
      part: 'link',
      recipient,
      subject: 'export',
      at,
      until: at + WORTH_MS,
    }),
  )
}

/** The mail of one recipient; undefined where the export or its config is gone. It has a link, never the file. */
export const exportMail = async (
  services: ResourceServices,
  publicUrl: string,
  id: string,
  { stream, recipient = 0, at }: OwedMailRow,
): Promise<Mail | undefined> => {
  const { log, keyring } = services
  const exportId = idOfStream(stream)
  const requested = await requestedIn(log, stream)
  const { row } = (await loadState(log, stream, jobDecider(EXPORT, exportId))).state
  const to = requested?.emails?.[recipient]
  if (to === undefined || row?.status !== 'completed' || row.exportConfigId === undefined) return undefined
  const config = await exportConfig.writer(services).load(row.exportConfigId)
  const owner = await organization.writer(services).load(row.organizationId)
  if (config.state.status !== 'live' || owner.state.status !== 'live') return undefined
  const { name, settings } = owner.state.values
  const language =
    (await languageOf(services, row.organizationId, to)) ?? (settings as JsonObject | undefined)?.language
  const view = {
    organization: String(name),
    config: String(config.state.values.name),
    rows: String(row.result?.rows ?? 0),
    until: formatTime(expiresAt(row)).slice(0, 10),
    oldEmail: '',
    newEmail: to,
  }
  return {
    id,
    to,
    at,
    ...renderMail('export', language as string | undefined, view, publicUrl + downloadPath(keyring, row)),
  }
}

/** The reader's language, where the organization has a user with this address. */
const languageOf = async (
  { tables }: ResourceServices,
  organizationId: string,
  email: string,
): Promise<string | undefined> => {
  const where = { emailKey: normalizeKey(email) }
  const { rows } = await tables.find<UserRow>(USERS_TABLE, organizationId, { where, limit: 1 })
  return rows[0]?.row.language as string | undefined
}

const requestedIn = async (log: EventLog, stream: string): Promise<ExportRequested | undefined> => {
  const [first] = await log.read(stream, 0, 1)
  return first?.type === EXPORT.types.requested ? decodeJson<ExportRequested>(first.data) : undefined
}
