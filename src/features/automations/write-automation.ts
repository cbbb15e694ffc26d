import { isDeepStrictEqual } from 'node:util'
import type { EventLog } from '../../engines/event-log.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import { isObject, type JsonObject } from '../../kernel/json.ts'
import { handleCommand, type Handled, type Prepare } from '../../kit/commands/handle-command.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import type { Keyring } from '../../kit/keys/keyring.ts'
import { type Quotas, withinQuotas } from '../../kit/quotas/quotas.ts'
import { createSchema } from '../../kit/resource/schemas.ts'
import { pickWithNull } from '../../kit/resource/pick.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { heldSchema } from '../../kit/resource/new-names.ts'
import { mergePatch } from '../../kit/resource/merge-patch.ts'
import {
  assertVersion,
  type Change,
  type Deletion,
  type ResourceWrites,
  type WriteOrigin,
  type Written,
} from '../../kit/resource/writes.ts'
import { replacedSince } from '../../kit/resource/told-once.ts'
import { assertValid, compileCheck } from '../../kit/http/validate.ts'
import { automation, type AutomationCommand, type AutomationState } from './automation.ts'
import { checkAutomation, type Checked, type CheckOptions } from './check-automation.ts'
import { automationResource } from './declaration.ts'
import { automationStream, type AutomationContent } from './events.ts'
import { newSecret, openDetails, openSecrets, PREVIOUS_SECRET_MS, sealDetails, sealSecret } from './sealed.ts'
import { AUTOMATIONS, type AutomationRow } from './views.ts'

const wholeBody = compileCheck(heldSchema(createSchema(automationResource.declaration)))

export class AutomationWriter implements ResourceWrites {
  private readonly log: EventLog
  private readonly keyring: Keyring
  private readonly quotas: Quotas | undefined
  private readonly check: CheckOptions

  constructor({ log, keyring, quotas }: Pick<ResourceServices, 'log' | 'keyring' | 'quotas'>, check: CheckOptions) {
    this.log = log
    this.keyring = keyring
    this.quotas = quotas
    this.check = check
  }

  /** Repeating `_id` and content returns the existing one. @throws Failure invalid, conflict, quota, not_available. */
  async create(origin: WriteOrigin, { _id, ...wanted }: JsonObject): Promise<Written> {
    const caller = editorOf(origin)
    const { organizationId, now: at } = origin
    const id = ((_id as string | undefined) ?? origin.ids.next()).toLowerCase()
    const secret = newSecret(this.keyring, origin.ids.next())
    const { wrote, state } = await withinQuotas(this.quotas, organizationId, (take) =>
      this.command(origin, id, async ({ first }) => {
        const content = this.seal(await checkAutomation(this.check, caller, wanted), first?.content)
        if (first === undefined) await take(AUTOMATIONS.name)
        const sealed = sealSecret(this.keyring, secret)
        return {
          type: 'create',
          data: { _id: id, organizationId, content, secret: sealed, editorId: caller.userId, at },
        }
      }),
    )
    const row = live(state, organizationId)
    return { row, wrote, ...((await this.signsWith(id, secret)) && this.told(row, secret)) }
  }

  /** @throws Failure not_found, stale_version, invalid, not_available. */
  async change(origin: WriteOrigin, { id, kind, body, expectedVersion }: Change): Promise<Written> {
    const sent = withoutShownSecret(pickWithNull(body, automationResource.declaration.fields))
    const caller = editorOf(origin)
    const { wrote, state } = await this.command(origin, id, async (before, version) => {
      const row = live(before, origin.organizationId)
      assertVersion(expectedVersion, version)
      const wanted = kind === 'replace' ? sent : mergePatch(this.writable(row), sent)
      if (kind === 'amend') assertValid(wholeBody, wanted)
      const checked = await checkAutomation(this.check, caller, wanted, this.checkedOf(row))
      return { type: 'change', data: { content: this.seal(checked, row), editorId: caller.userId, at: origin.now } }
    })
    return { row: live(state, origin.organizationId), wrote }
  }

  /** Rotates the secret; the new and the previous one sign for a day. @throws Failure not_found, conflict */
  async rotateSecret(origin: WriteOrigin, id: string): Promise<Written> {
    const row = await this.load(origin.organizationId, id)
    const secret = newSecret(this.keyring, origin.ids.next())
    const data = {
      secret: sealSecret(this.keyring, secret),
      previousUntil: origin.now + PREVIOUS_SECRET_MS,
      at: origin.now,
    }
    const { wrote, state } = await this.command(origin, row._id, { type: 'rotateSecret', data })
    if (!(await this.signsWith(row._id, secret))) throw replacedSince()
    const after = live(state, origin.organizationId)
    return { row: after, wrote, ...this.told(after, secret) }
  }

  /** @throws Failure not_found, stale_version. */
  async delete(origin: WriteOrigin, { id, expectedVersion }: Deletion): Promise<Written> {
    const { organizationId, now } = origin
    let last: AutomationRow | undefined
    const { wrote } = await this.command(origin, id, async ({ row }, version) => {
      last = live({ row }, organizationId)
      assertVersion(expectedVersion, version)
      return { type: 'delete', data: { organizationId, at: now } }
    })
    return { row: last as AutomationRow, wrote }
  }

  /** Details with the secret, if receivers get one: shown once, and to a repeat of the same request. */
  private told(row: AutomationRow, secret: string): Pick<Written, 'told'> {
    const action = this.check.actions[row.automationType]
    if (action?.isSigned !== true) return {}
    return { told: { automationDetails: { ...action.show(openDetails(this.keyring, row)), secret } } }
  }

  /** Compares with the current secret: it may have been replaced since a repeated request wrote it. */
  private async signsWith(id: string, secret: string): Promise<boolean> {
    const { row } = (await loadState(this.log, automationStream(id), automation)).state
    return row !== undefined && openSecrets(this.keyring, row, 0)[0] === secret
  }

  private async load(organizationId: string, id: string): Promise<AutomationRow> {
    const { state } = await loadState(this.log, automationStream(id), automation)
    return live(state, organizationId)
  }

  private command(
    { ids, metadata }: WriteOrigin,
    id: string,
    command: AutomationCommand | Prepare<AutomationState, AutomationCommand>,
  ): Promise<Handled<AutomationState>> {
    return handleCommand(this.log, automationStream(id), automation, command, { ids, metadata })
  }

  /** Unchanged details keep their sealed form. */
  private seal({ details, ...content }: Checked, before?: Pick<AutomationContent, 'details'>): AutomationContent {
    const isKept = before !== undefined && isDeepStrictEqual(details, openDetails(this.keyring, before))
    return { ...content, details: isKept ? before.details : sealDetails(this.keyring, details) }
  }

  private checkedOf(content: AutomationContent): Checked {
    const { name, event, dataType, automationType, rules, isActive, names } = content
    const details = openDetails(this.keyring, content)
    return { name, event, dataType, automationType, details, rules, isActive, ...(names !== undefined && { names }) }
  }

  /** Fields that an editor may write, unchanged; the data type follows from the event. */
  private writable(row: AutomationRow): JsonObject {
    const { name, event, automationType, rules, isActive } = row
    return {
      name,
      event,
      automationType,
      automationDetails: openDetails(this.keyring, row),
      rules: rules as unknown as JsonObject,
      isActive,
    }
  }
}

const live = ({ row }: Pick<AutomationState, 'row'>, organizationId: string): AutomationRow => {
  if (row === undefined || row.organizationId !== organizationId) throw new Failure('not_found')
  return row
}

/** The writer of an automation, always present, bounds its visibility. */
const editorOf = ({ caller }: WriteOrigin): UserCaller => {
  if (caller === undefined) throw new Failure('forbidden')
  return caller
}

/** The secret appears in the details of one answer; writing that answer back does not set it. */
const withoutShownSecret = (body: JsonObject): JsonObject => {
  const { automationDetails } = body
  if (!isObject(automationDetails)) return body
  const { secret: _shown, ...details } = automationDetails
  return { ...body, automationDetails: details }
}
