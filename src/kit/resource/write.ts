import { isDeepStrictEqual } from 'node:util'
import { allEnded } from '../../kernel/all-ended.ts'
import type { Decider } from '../../kernel/decider.ts'
import type { RecordedEvent } from '../../kernel/event.ts'
import { joined, type Json, type JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { rowOf, rowParts, type ResourceData } from '../commands/declared-event.ts'
import { handleCommand, stateBy, type Handled, type Prepare } from '../commands/handle-command.ts'
import { loadState } from '../commands/load-state.ts'
import { allWrote } from '../commands/wrote.ts'
import { type TakePlace, withinQuotas } from '../quotas/quotas.ts'
import { takeBytes, takeNew } from '../quotas/take-bytes.ts'
import { formatTime } from '../http/request-context.ts'
import type { Wrote } from '../http/route.ts'
import type { Check } from '../http/validate.ts'
import { ResourceClaims } from './claims.ts'
import { createdId } from './created-id.ts'
import { withDefaults } from './pick.ts'
import type { Redirected, ResourceDeclaration, ResourceServices } from './declaration.ts'
import { canBeMade, resourceDecider, type ResourceCommand, type ResourceState } from './decider.ts'
import { assertHubs, assertReferences, heirOf } from './references.ts'
import { Naming, type NameIn } from './naming.ts'
import { ResourceSecrets } from './secrets.ts'
import { assertSeen } from './seen.ts'
import { changedValues, valuesCheck } from './values-check.ts'
import { madeOnce, stillTold, toldOf } from './told-once.ts'
import {
  assertVersion,
  asService,
  type Change,
  type Deletion,
  type Making,
  GIVE_WAY,
  type RecordRef,
  type ResourceWrites,
  type WriteOrigin,
  type Written,
} from './writes.ts'

/** Records that a deletion is taken out of before it is answered; others follow. */
const TAKEN_OUT_MAX = 1_000

/** Makes the command of a write from the present record. */
type PrepareWrite = (state: ResourceState, version: number, take: TakePlace) => Promise<ResourceCommand>

/** Refuses the deletion of a record by throwing. */
type MayDelete = (state: ResourceState, version: number) => Promise<void>

/** The writes of one resource, below its routes: also for the service itself (the first hub of an organization). */
export class ResourceWriter implements ResourceWrites {
  readonly declaration: ResourceDeclaration
  private readonly services: ResourceServices
  private readonly secrets: ResourceSecrets
  private readonly claims: ResourceClaims
  private readonly naming: Naming
  private readonly check: Check
  private readonly decider: Decider<ResourceState, ResourceCommand>

  constructor(declaration: ResourceDeclaration, services: ResourceServices) {
    this.declaration = declaration
    this.services = services
    this.secrets = new ResourceSecrets(declaration, services.keyring)
    this.claims = new ResourceClaims(declaration, services, (id) => this.load(id))
    this.naming = new Naming(declaration, services)
    this.check = valuesCheck(declaration)
    this.decider = resourceDecider(declaration, (data) => this.secrets.opened(data))
  }

  /** As `make`, with the content of the body. */
  create(origin: WriteOrigin, body: JsonObject, extra?: JsonObject): Promise<Written> {
    const { id, isDrawn } = createdId(this.declaration, origin, body)
    return this.make(origin, id, async () => ({ body, extra }), isDrawn)
  }

  /**
   * Makes a resource of the answer of `making`, which is not called where the same request made one before. The same `_id`
   * and body again answer the existing record, to callers who see it; a repeat of the same request gets values shown once.
   * @throws Failure as `update`, conflict, quota
   */
  async make(origin: WriteOrigin, id: string, making: () => Promise<Making>, isDrawn = false): Promise<Written> {
    const once = madeOnce(this.declaration, this.services, origin, id)
    const prepare: PrepareWrite = async (state, _version, take) => {
      const { body, extra = {} } = await making()
      const said = joined(withDefaults(this.declaration.fields, body), extra)
      const values = await this.kept(origin, id, said, undefined)
      if (!canBeMade(this.declaration, state, values)) return { type: 'create', data: this.data(origin, values) }
      const { plural } = this.declaration
      await allEnded([this.assertAllowed(origin, id, values, undefined), takeNew(take, plural, values)])
      return { type: 'create', data: this.data(origin, { ...values, ...once?.kept }) }
    }
    const { wrote, ...made } = await this.handle(origin, id, prepare, isDrawn)
    if (wrote === undefined) await assertSeen(this.declaration, this.services, origin, { id, ...made })
    return { row: await this.rowOf(id, made), wrote, ...toldOf(once, await this.present(origin, id, made.state)) }
  }

  /** The record that the same request made under that id before, by a process. */
  async madeBefore({ ids, metadata }: WriteOrigin, id: string): Promise<Written | undefined> {
    const { request } = metadata
    if (ids.isRepeat !== true || request === undefined) return undefined
    const isOwn = (event: RecordedEvent): boolean => event.metadata.request === request
    const made = await stateBy(this.services.log, this.stream(id), this.decider, isOwn)
    return made && { row: await this.rowOf(id, made), wrote: made.wrote }
  }

  /**
   * `extra` sets read-only and internal fields.
   * @throws Failure not_found, stale_version, invalid, key_in_use, quota, conflict after 50 lost races.
   */
  change(origin: WriteOrigin, change: Change, extra: JsonObject = {}): Promise<Written> {
    const next = (before: JsonObject): JsonObject =>
      joined(changedValues(this.declaration, this.check, before, change), extra)
    return this.update(origin, change.id, next, change.expectedVersion)
  }

  /**
   * Writes the values that `next` makes of the present ones: with read-only and internal ones, and secrets in clear. It
   * is called again when another writer was faster.
   * @throws Failure as `change`
   */
  async update(
    origin: WriteOrigin,
    id: string,
    next: (before: JsonObject) => JsonObject | Promise<JsonObject>,
    expectedVersion?: number,
  ): Promise<Written> {
    const { wrote, ...changed } = await this.handle(origin, id, async (state, version, take) => {
      await assertSeen(this.declaration, this.services, origin, { id, state, version })
      assertVersion(expectedVersion, version)
      const before = this.secrets.opened(state)
      const values = await this.kept(origin, id, await next(before), before)
      if (!isDeepStrictEqual(values, before)) await this.assertAllowed(origin, id, values, before)
      await takeBytes(take, values, before)
      return { type: 'change', data: this.data(origin, values, state) }
    })
    return { row: await this.rowOf(id, changed), wrote }
  }

  /** The answer's row is the last one. @throws Failure not_found, stale_version, conflict that names its users. */
  async delete(origin: WriteOrigin, { id, expectedVersion, replaceWith }: Deletion): Promise<Written> {
    const { processes, resources } = this.services
    const { plural } = this.declaration
    let last: { state: ResourceState; version: number } | undefined
    const assertDeletable = async (
      state: ResourceState,
      version: number,
      lately: readonly RecordRef[] = [],
    ): Promise<void> => {
      await assertSeen(this.declaration, this.services, origin, { id, state, version })
      assertVersion(expectedVersion, version)
      const { organizationId, values } = state
      const { caller, now } = origin
      const write = { services: this.services, caller, organizationId, id, now, values, before: values }
      const heir =
        replaceWith === undefined ? undefined : await heirOf(this.declaration, this.services, origin, id, replaceWith)
      await this.declaration.deletion?.check?.(write, heir)
      if (heir === undefined) await resources.assertUnused(this.services, origin, { plural, id, lately })
      last = { state, version }
    }
    const wrote =
      replaceWith === undefined
        ? await this.naming.deletion(id, (lately) =>
            this.remove(origin, id, (state, version) => assertDeletable(state, version, lately)),
          )
        : await processes.run(GIVE_WAY, id, asService(origin), async () => {
            const { state, version } = await this.load(id)
            await assertDeletable(state, version)
            return { plural, id, replaceWith }
          })
    // A record that a repeated request deleted before is not looked at again.
    const { state, version } = last ?? (await this.load(id))
    // It is deleted: the failed rest follows (reactors/references).
    const takenOut = await this.takeOut(origin, id, TAKEN_OUT_MAX).catch(() => ({ isDone: false, wrote: undefined }))
    const row = rowOf(id, version, state)
    return { wrote: allWrote(wrote, takenOut.wrote), row, isPending: !takenOut.isDone }
  }

  /** Deletes only the record; `heir` replaced it where it was named. @throws Failure not_found, and of the check. */
  async remove(origin: WriteOrigin, id: string, check?: MayDelete, heir?: string): Promise<Wrote | undefined> {
    const { wrote } = await this.handle(origin, id, async (state, version) => {
      await check?.(state, version)
      const { organizationId, values, createdAt } = state
      const at = formatTime(origin.now)
      return { type: 'delete', data: { organizationId, values, createdAt, replacedBy: heir, at } }
    })
    return wrote
  }

  /** Takes a deleted record out of the records that name it. Repeating it changes nothing. */
  async takeOut(origin: WriteOrigin, id: string, recordsMax?: number): Promise<Redirected> {
    const { plural, deletion } = this.declaration
    if (deletion?.whenReferenced !== 'takeOut') return { isDone: true }
    return this.services.resources.redirect(this.services, origin, plural, id, undefined, recordsMax)
  }

  /** Replaces the value shown once; the one before ends at once. @throws Failure not_found, conflict */
  async rotate(origin: WriteOrigin, id: string): Promise<Written> {
    const once = madeOnce(this.declaration, this.services, origin, id)
    if (once === undefined) throw new Error(`${this.declaration.noun} has nothing that is told once`)
    const { wrote, ...rotated } = await this.handle(origin, id, async (state, version) => {
      await assertSeen(this.declaration, this.services, origin, { id, state, version })
      return { type: 'change', data: this.data(origin, { ...this.secrets.opened(state), ...once.kept }, state) }
    })
    const told = stillTold(once, await this.present(origin, id, rotated.state))
    return { row: await this.rowOf(id, rotated), wrote, ...told }
  }

  /** The resource as its stream has it. */
  load(id: string): Promise<{ state: ResourceState; version: number }> {
    return loadState(this.services.log, this.stream(id), this.decider)
  }

  /** The value of a write-only field. */
  open(state: ResourceState, field: string): Json | undefined {
    const sealed = state.sealed[field]
    return sealed === undefined ? undefined : this.secrets.open(field, sealed)
  }

  /** The id of the record that this body creates. @throws Failure invalid */
  idOf(origin: WriteOrigin, body: JsonObject): string {
    return createdId(this.declaration, origin, body).id
  }

  /** Common path of all writes: none comes to name a deleted record, or takes another record's value. */
  handle(
    { organizationId, ids, metadata, isOneOfMany }: WriteOrigin,
    id: string,
    prepare: PrepareWrite,
    isNew?: boolean,
  ): Promise<Handled<ResourceState>> {
    const context = { ids, metadata, isNew, isOneOfMany }
    const take = this.claims.takerFor(organizationId, id, context)
    const write = (nameIn: NameIn, place: TakePlace) => {
      const decide: Prepare<ResourceState, ResourceCommand> = (state, version) => prepare(state, version, place)
      return handleCommand(
        this.services.log,
        this.stream(id),
        this.decider,
        decide,
        context,
        async (after, before, at) => {
          if (after.status !== 'live') return
          const values = before.status === 'live' ? before.values : undefined
          await nameIn(after.values, values)
          await take(after.values, values, at)
        },
      )
    }
    return withinQuotas(this.services.quotas, organizationId, (place) =>
      this.naming.write(id, (nameIn) => write(nameIn, place)),
    )
  }

  /** A secret shown again must still be valid: others may have changed it since a repeated request wrote it. */
  private async present({ ids }: WriteOrigin, id: string, written: ResourceState): Promise<ResourceState> {
    return ids.isRepeat === true ? (await this.load(id)).state : written
  }

  private async kept(
    { caller, organizationId, now }: WriteOrigin,
    id: string,
    values: JsonObject,
    before: JsonObject | undefined,
  ): Promise<JsonObject> {
    const write = { services: this.services, caller, organizationId, id, now, values, before }
    return (await this.declaration.rules?.keep?.(write)) ?? values
  }

  private async assertAllowed(
    { caller, organizationId, now }: WriteOrigin,
    id: string,
    values: JsonObject,
    before: JsonObject | undefined,
  ): Promise<void> {
    const { rules, fields, hubField } = this.declaration
    if (hubField !== undefined && caller !== undefined && Object.hasOwn(fields, hubField))
      assertHubs(caller, values, hubField)
    await allEnded([
      assertReferences(this.declaration, this.services, caller, organizationId, values, before),
      rules?.checks?.({ services: this.services, caller, organizationId, id, now, values, before }),
    ])
  }

  private data({ organizationId, now }: WriteOrigin, values: JsonObject, before?: ResourceState): ResourceData {
    const at = formatTime(now)
    const sealed = this.secrets.seal(values, before?.sealed ?? {})
    return { organizationId, ...sealed, createdAt: before?.createdAt ?? at, at }
  }

  async rowOf(id: string, { state, version }: { state: ResourceState; version: number }): Promise<Row> {
    const { table, plural } = this.declaration
    const row = rowOf(id, version, ...rowParts(this.declaration, state))
    if (table?.links === undefined) return row
    const stored = await this.services.tables.get(plural, state.organizationId, id)
    return { ...row, ...Object.fromEntries(Object.keys(table.links).map((member) => [member, stored?.[member] ?? []])) }
  }

  private stream(id: string): string {
    return `${this.declaration.noun}-${id}`
  }
}
