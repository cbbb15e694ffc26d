import { isDeepStrictEqual } from 'node:util'
import type { EventLog } from '../../engines/event-log.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { handleCommand, loadState, type CommandContext, type Handled } from '../../kit/commands/handle-command.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import type { WriteOrigin } from '../../kit/resource/write.ts'
import type { Wrote } from '../../kit/http/route.ts'
import { automation, type AutomationCommand, type AutomationState } from './automation.ts'
import { checkAutomation, type Checked, type CheckOptions } from './check-automation.ts'
import { automationStream, type AutomationContent, type AutomationCreated } from './events.ts'
import { newSecret, openDetails, PREVIOUS_SECRET_MS, sealDetails, sealSecret } from './sealed.ts'
import type { AutomationRow } from './views.ts'

export interface Written {
  row: AutomationRow
  wrote?: Wrote
  /** Only when one was made. */
  secret?: string
}

type Origin = WriteOrigin & { caller: UserCaller }

const TRIES = 5

/** The writes of automations, below their routes. */
export class AutomationWriter {
  private readonly log: EventLog
  private readonly keyring: Keyring
  private readonly check: CheckOptions

  constructor(log: EventLog, keyring: Keyring, check: CheckOptions) {
    this.log = log
    this.keyring = keyring
    this.check = check
  }

  /** The same `_id` and content again answer what is there, without the secret. @throws Failure invalid, conflict, not_available. */
  async create(origin: Origin, { _id, ...wanted }: JsonObject): Promise<Written> {
    const checked = await checkAutomation(this.check, origin.caller, wanted)
    const id = ((_id as string | undefined) ?? origin.ids.next()).toLowerCase()
    const secret = newSecret()
    const data: AutomationCreated = {
      _id: id,
      organizationId: origin.organizationId,
      content: this.seal(checked),
      secret: sealSecret(this.keyring, secret),
      editorId: origin.caller.userId,
      at: origin.now,
    }
    const { state } = await loadState(this.log, automationStream(id), automation)
    if (state.first !== undefined) return this.repeated(state, data.organizationId, checked)
    const { wrote, state: after } = await this.command(origin, id, { type: 'create', data })
    return { row: live(after, origin.organizationId), wrote, secret }
  }

  /** `wantedOf` makes the whole automation as it should be from what it is. @throws Failure not_found, stale_version, invalid, not_available. */
  async change(
    origin: Origin,
    id: string,
    expectedVersion: number | undefined,
    wantedOf: (before: JsonObject) => JsonObject,
  ): Promise<Written> {
    for (let tries = 1; ; tries++) {
      const { state, version } = await loadState(this.log, automationStream(id), automation)
      const row = live(state, origin.organizationId)
      if (expectedVersion !== undefined && expectedVersion !== version)
        throw new Failure('stale_version', { extra: { version } })
      const checked = await checkAutomation(
        this.check,
        origin.caller,
        wantedOf(this.writable(row)),
        openDetails(this.keyring, row),
      )
      const editorId = origin.caller.userId
      if (editorId === row.editorId && isDeepStrictEqual(checked, this.checkedOf(row))) return { row }
      try {
        const { wrote, state: after } = await this.command(
          origin,
          id,
          { type: 'change', data: { content: this.seal(checked, row), editorId, at: origin.now } },
          version,
        )
        return { row: live(after, origin.organizationId), wrote }
      } catch (error) {
        const isRace =
          error instanceof Failure && error.code === 'stale_version' && expectedVersion === undefined && tries < TRIES
        if (!isRace) throw error
      }
    }
  }

  /** A new secret; it and the one before sign for a day. @throws Failure not_found */
  async rotateSecret(origin: Origin, id: string): Promise<Written> {
    const row = await this.load(origin.organizationId, id)
    const secret = newSecret()
    const data = {
      secret: sealSecret(this.keyring, secret),
      previousUntil: origin.now + PREVIOUS_SECRET_MS,
      at: origin.now,
    }
    const { wrote, state } = await this.command(origin, row._id, { type: 'rotateSecret', data })
    return { row: live(state, origin.organizationId), wrote, secret }
  }

  /** @throws Failure not_found, stale_version. */
  async delete(origin: Origin, id: string, expectedVersion: number | undefined): Promise<Wrote | undefined> {
    const { organizationId, now } = origin
    await this.load(organizationId, id)
    const { wrote } = await this.command(
      origin,
      id,
      { type: 'delete', data: { organizationId, at: now } },
      expectedVersion,
    )
    return wrote
  }

  /** Asks for another attempt of a run. @throws Failure not_found, conflict when the automation is not active. */
  async retryRun(origin: Origin, id: string, runId: string, partition: number): Promise<Wrote | undefined> {
    const row = await this.load(origin.organizationId, id)
    if (!row.isActive) throw new Failure('conflict', { message: 'The automation is not active; activate it first.' })
    const { wrote } = await this.command(origin, id, { type: 'retryRun', data: { runId, partition, at: origin.now } })
    return wrote
  }

  private async load(organizationId: string, id: string): Promise<AutomationRow> {
    const { state } = await loadState(this.log, automationStream(id), automation)
    return live(state, organizationId)
  }

  private command(
    origin: Origin,
    id: string,
    command: AutomationCommand,
    expectedVersion?: number,
  ): Promise<Handled<AutomationState>> {
    const context: CommandContext = {
      ids: origin.ids,
      metadata: origin.metadata,
      ...(expectedVersion !== undefined && { expectedVersion }),
    }
    return handleCommand(this.log, automationStream(id), automation, command, context)
  }

  private repeated({ row, first }: AutomationState, organizationId: string, checked: Checked): Written {
    const isSame =
      row !== undefined &&
      first !== undefined &&
      row.organizationId === organizationId &&
      isDeepStrictEqual(checked, this.checkedOf(first.content))
    if (!isSame)
      throw new Failure('conflict', { message: '/_id is taken', errors: [{ path: '/_id', message: 'is taken' }] })
    return { row }
  }

  /** Details that did not change keep their sealed form. */
  private seal({ details, ...content }: Checked, before?: AutomationRow): AutomationContent {
    const isKept = before !== undefined && isDeepStrictEqual(details, openDetails(this.keyring, before))
    return { ...content, details: isKept ? before.details : sealDetails(this.keyring, details) }
  }

  private checkedOf({ name, event, dataType, automationType, rules, isActive, details }: AutomationContent): Checked {
    return { name, event, dataType, automationType, details: openDetails(this.keyring, { details }), rules, isActive }
  }

  /** What an editor may write, as it is; the data type follows from the event. */
  private writable(row: AutomationRow): JsonObject {
    const { name, event, automationType, rules, isActive } = row
    return {
      name,
      event,
      automationType,
      automationDetails: openDetails(this.keyring, row),
      rules,
      isActive,
    } as unknown as JsonObject
  }
}

const live = ({ row }: AutomationState, organizationId: string): AutomationRow => {
  if (row === undefined || row.organizationId !== organizationId) throw new Failure('not_found')
  return row
}
