import { isDeepStrictEqual } from 'node:util'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure, invalid } from '../../kernel/errors.ts'
import type { EventMetadata, Fact } from '../../kernel/event.ts'
import type { Json, JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { appendFacts, loadState } from '../commands/handle-command.ts'
import { hubsOf, seesRow } from '../http/list-query.ts'
import {
  mergePatch,
  pick,
  valuesSchema,
  withDefaults,
  writeOnlyOf,
  type ResourceDeclaration,
  type ResourceServices,
  type WriteContext,
} from './declaration.ts'
import { eventTypes, rowOf, type ResourceData } from '../commands/declared-event.ts'
import { ResourceClaims } from './claims.ts'
import { ResourceSecrets } from './secrets.ts'
import { ABSENT, evolveResource, type ResourceState } from './rows.ts'
import { formatTime } from '../http/request-context.ts'
import type { IdSource, Wrote } from '../http/route.ts'
import { assertValid, compileCheck, type Check } from '../http/validate.ts'

/** Who writes, for whom, when. `caller` is absent where the service itself does. */
export interface WriteOrigin {
  organizationId: string
  caller?: UserCaller
  now: number
  ids: IdSource
  metadata: EventMetadata
}

export interface Written {
  row: Row
  wrote?: Wrote
}

export interface Change {
  id: string
  /** `replace` sets every writable field, `amend` is a merge patch. */
  kind: 'replace' | 'amend'
  body: JsonObject
  expectedVersion?: number
}

/** Each lost race is somebody else's write, so that many writers at once all come through. */
const TRIES = 50

/** The writes of one resource, below its routes: also for the service itself (the first hub of an organization). */
export class ResourceWriter {
  private readonly declaration: ResourceDeclaration
  private readonly services: ResourceServices
  private readonly secrets: ResourceSecrets
  private readonly claims: ResourceClaims
  private readonly check: Check
  private readonly types: { created: string; changed: string; deleted: string }

  constructor(declaration: ResourceDeclaration, services: ResourceServices) {
    this.declaration = declaration
    this.services = services
    this.secrets = new ResourceSecrets(declaration, services.keyring)
    this.claims = new ResourceClaims(declaration, services, (id) => this.load(id))
    this.check = compileCheck(valuesSchema(declaration))
    this.types = eventTypes(declaration.noun)
  }

  /**
   * Makes a resource. `extra` sets read-only fields. The same `_id` and body again answer what is there.
   * @throws Failure invalid, conflict when the id is taken, key_in_use.
   */
  async create(origin: WriteOrigin, body: JsonObject, extra: JsonObject = {}): Promise<Written> {
    const { _id, ...rest } = body
    const id = (_id as string | undefined) ?? origin.ids.next()
    const values = { ...withDefaults(this.declaration.fields, rest), ...extra }
    const take = this.claims.takerFor(origin.organizationId, id, origin)
    for (let tries = 0; tries < TRIES; tries++) {
      const { state, version } = await this.load(id)
      if (state.status !== 'absent') return this.repeated(origin, id, values, state, version)
      await this.assertAllowed(origin, id, values, undefined)
      const at = formatTime(origin.now)
      const data = { organizationId: origin.organizationId, ...this.secrets.seal(values, {}), createdAt: at, at }
      await take(values, undefined, version)
      const wrote = await this.append(id, { type: this.types.created, data }, version, origin)
      if (wrote !== undefined) return { row: this.row(id, version + 1, { ...data, updatedAt: at }), wrote }
    }
    throw lostRaces()
  }

  /** @throws Failure not_found, stale_version, invalid, key_in_use, conflict after 50 lost races. */
  async change(origin: WriteOrigin, change: Change): Promise<Written> {
    const take = this.claims.takerFor(origin.organizationId, change.id, origin)
    for (let tries = 0; tries < TRIES; tries++) {
      const { state, version } = await this.loadSeen(origin, change.id)
      assertVersion(change.expectedVersion, version)
      const values = this.changed(state, change)
      if (isDeepStrictEqual(values, this.secrets.opened(state))) return { row: this.row(change.id, version, state) }
      await this.assertAllowed(origin, change.id, values, state.values)
      const { organizationId, createdAt } = state
      const data = { organizationId, ...this.secrets.seal(values, state.sealed), createdAt, at: formatTime(origin.now) }
      await take(values, state.values, version)
      const wrote = await this.append(change.id, { type: this.types.changed, data }, version, origin)
      if (wrote === undefined) continue
      return { row: this.row(change.id, version + 1, { ...data, updatedAt: data.at }), wrote }
    }
    throw lostRaces()
  }

  /** @throws Failure not_found, stale_version, conflict. */
  async delete(origin: WriteOrigin, id: string, expectedVersion?: number): Promise<{ wrote?: Wrote; row: Row }> {
    for (let tries = 0; tries < TRIES; tries++) {
      const { state, version } = await this.loadSeen(origin, id)
      assertVersion(expectedVersion, version)
      await this.declaration.beforeDelete?.(this.context(origin, id, state.values, state.values))
      const { organizationId, values, createdAt } = state
      const data: ResourceData = { organizationId, values, createdAt, at: formatTime(origin.now) }
      const wrote = await this.append(id, { type: this.types.deleted, data }, version, origin)
      if (wrote === undefined) continue
      return { wrote, row: this.row(id, version, state) }
    }
    throw lostRaces()
  }

  /** The resource as its stream has it. */
  load(id: string): Promise<{ state: ResourceState; version: number }> {
    const evolve = evolveResource(this.declaration.noun)
    return loadState(this.services.log, this.stream(id), { initial: ABSENT, decide: () => [], evolve })
  }

  /** The value of a write-only field. */
  open(state: ResourceState, field: string): Json | undefined {
    const sealed = state.sealed[field]
    return sealed === undefined ? undefined : this.secrets.open(field, sealed)
  }

  private async loadSeen(origin: WriteOrigin, id: string): Promise<{ state: ResourceState; version: number }> {
    const loaded = await this.load(id)
    const { state } = loaded
    if (state.status !== 'live' || state.organizationId !== origin.organizationId) throw new Failure('not_found')
    if (
      origin.caller !== undefined &&
      !seesRow(origin.caller, this.row(id, loaded.version, state), this.declaration.hubField)
    )
      throw new Failure('not_found')
    return loaded
  }

  private repeated(
    origin: WriteOrigin,
    id: string,
    values: JsonObject,
    state: ResourceState,
    version: number,
  ): Written {
    const isSame = state.status === 'live' && state.organizationId === origin.organizationId
    if (!isSame || !isDeepStrictEqual(values, this.secrets.opened(state.first))) {
      throw new Failure('conflict', { message: `/_id ${id} is taken`, errors: [{ path: '/_id', message: 'is taken' }] })
    }
    return { row: this.row(id, version, state) }
  }

  private changed(state: ResourceState, change: Change): JsonObject {
    const { fields, readOnly = {} } = this.declaration
    const current = this.secrets.opened(state)
    const writable = pick(change.body, Object.keys(fields))
    const kept = pick(current, change.kind === 'replace' ? writeOnlyOf(this.declaration) : Object.keys(fields))
    const merged =
      change.kind === 'replace'
        ? { ...kept, ...writable }
        : (mergePatch(kept, pickWithNull(change.body, fields)) as JsonObject)
    assertValid(this.check, merged)
    return { ...withDefaults(fields, merged), ...pick(state.values, Object.keys(readOnly)) }
  }

  private async assertAllowed(
    origin: WriteOrigin,
    id: string,
    values: JsonObject,
    before: JsonObject | undefined,
  ): Promise<void> {
    const { hubField } = this.declaration
    if (hubField !== undefined && hubField !== '_id' && origin.caller !== undefined)
      assertHubs(origin.caller, values, hubField)
    await this.declaration.checks?.(this.context(origin, id, values, before))
  }

  private context(
    { caller, organizationId }: WriteOrigin,
    id: string,
    values: JsonObject,
    before: JsonObject | undefined,
  ): WriteContext {
    return { services: this.services, caller, organizationId, id, values, before }
  }

  private append(id: string, fact: Fact, version: number, { ids, metadata }: WriteOrigin): Promise<Wrote | undefined> {
    return appendFacts(this.services.log, this.stream(id), [fact], [ids.next()], version, metadata)
  }

  private row(
    id: string,
    version: number,
    data: Pick<ResourceState, 'organizationId' | 'values' | 'createdAt' | 'updatedAt'>,
  ): Row {
    return rowOf(id, version, data)
  }

  private stream(id: string): string {
    return `${this.declaration.noun}-${id}`
  }
}

const assertVersion = (expected: number | undefined, version: number): void => {
  if (expected !== undefined && expected !== version) throw new Failure('stale_version', { extra: { version } })
}

const assertHubs = (caller: UserCaller, values: JsonObject, hubField: string): void => {
  if (!seesRow(caller, values, hubField)) {
    throw invalid(
      `/${hubField}`,
      hubsOf(values, hubField).length === 0
        ? 'is required: you see only what belongs to your hubs'
        : 'must be one of your hubs',
    )
  }
}

// Unlike `pick`, keeps null: in a merge patch it takes the field away.
const pickWithNull = (body: JsonObject, fields: object): JsonObject =>
  Object.fromEntries(Object.entries(body).filter(([name]) => Object.hasOwn(fields, name)))

const lostRaces = (): Failure =>
  new Failure('conflict', { message: 'Others are changing this at the same time; try again.', retryAfterSeconds: 1 })
