import type { Mail } from '../../engines/mailer.ts'
import { EXPORT } from '../../features/exports/views.ts'
import { IDENTITY, type LinkIssued, type LinkKind } from '../../features/identity/events.ts'
import { identity } from '../../features/identity/identity.ts'
import type { IdentityState } from '../../features/identity/identity-state.ts'
import { undoIdOf } from '../../features/identity/links/email-undo.ts'
import { isOpen, linkToken } from '../../features/identity/links/links.ts'
import { organization } from '../../features/identity/organizations/organization.ts'
import { user } from '../../features/identity/users/user.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { foldStream } from '../../kit/commands/fold-stream.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import { exportMail } from './export-mails.ts'
import type { OwedMailRow } from './owed-mails.ts'
import { renderMail } from './render-mail.ts'
import type { MailView } from './texts/mail-text.ts'

/** Pages that links lead to (src/web/account.html). */
const PAGES: { readonly [kind in LinkKind]: string } = {
  invitation: 'accept-invitation',
  verification: 'verify-email',
  reset: 'reset-password',
  reopening: 'reset-password',
  emailChange: 'verify-email',
  emailUndo: 'reset-password',
}

/** Makes mails for the facts that owe them, from the state at that time. */
export class MailComposer {
  private readonly services: ResourceServices
  private readonly publicUrl: string
  private readonly organizations: ResourceWriter
  private readonly users: ResourceWriter

  constructor(services: ResourceServices, publicUrl: string) {
    this.services = services
    this.publicUrl = publicUrl
    this.organizations = organization.writer(services)
    this.users = user.writer(services)
  }

  /** The mail as of `now`; undefined when there is no recipient or no subject left. */
  async compose(id: string, row: OwedMailRow, now: number): Promise<Mail | undefined> {
    const { log } = this.services
    const { stream, revision, part, at } = row
    const [event] = await log.read(stream, revision, 1)
    if (event?.revision === revision && event.type === EXPORT.types.finished)
      return exportMail(this.services, this.publicUrl, id, row)
    if (event?.revision !== revision || event.type !== IDENTITY.linkIssued) return undefined
    const link = decodeJson<LinkIssued>(event.data)
    const { state } = await loadState(log, stream, identity)
    if (!state.exists) return undefined
    const before = await foldStream(log, stream, revision, identity.initial, identity.evolve)
    const wantedId = part === 'notice' ? undoIdOf(link.linkId) : link.linkId
    const current = state.links.find(({ linkId }) => linkId === wantedId)
    if (current === undefined || !isOpen(current, formatTime(now))) return undefined
    const kind = current.isForFactor === true ? 'factorRemoved' : current.kind
    const [view, language] = [await this.viewOf(link, before), await this.languageOf(link, state)]
    const url = this.urlOf(current, idOfStream(stream))
    return { id, to: current.email, at, ...renderMail(kind, language, view, url) }
  }

  private urlOf({ kind, linkId }: LinkIssued, identityId: string): string {
    const token = linkToken(this.services.keyring, identityId, linkId)
    return `${this.publicUrl}/${PAGES[kind]}?token=${token}`
  }

  private async viewOf(
    { organizationId, askedBy, email }: LinkIssued,
    { email: oldEmail }: IdentityState,
  ): Promise<MailView> {
    const [{ name = 'Waymark' }, { name: inviter }] = await Promise.all([
      valuesOf(this.organizations, organizationId),
      valuesOf(this.users, askedBy),
    ])
    return {
      organization: name as string,
      ...(typeof inviter === 'string' && { inviter }),
      oldEmail,
      newEmail: email,
    }
  }

  /** The reader's own, otherwise that of the organization that it is about. */
  private async languageOf({ organizationId, userId }: LinkIssued, state: IdentityState): Promise<string | undefined> {
    const known = { organizationId, userId, ...(userId === undefined && state.memberships[0]) }
    const { language } = await valuesOf(this.users, known.userId)
    if (typeof language === 'string') return language
    const { settings } = await valuesOf(this.organizations, known.organizationId)
    return (settings as JsonObject | undefined)?.language as string | undefined
  }
}

const valuesOf = async (writer: ResourceWriter, id: string | undefined): Promise<JsonObject> => {
  if (id === undefined) return {}
  const { state } = await writer.load(id)
  return state.status === 'live' ? state.values : {}
}
