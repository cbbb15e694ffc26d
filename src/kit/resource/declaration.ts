import type { UserCaller } from '../../kernel/caller.ts'
import type { Fields } from '../../kernel/schema.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import type { Row, TableDeclaration } from '../../kernel/table.ts'
import type { Personal } from '../../kernel/hidden-fields.ts'
import type { Absent, Audience } from '../http/list-query.ts'
import type { Answer, Reply, RouteRequest, Settlement, Wrote } from '../http/route.ts'
import type { Services } from '../services.ts'
import type { ListFilter } from './list-filter.ts'
import type { LeavingRecord, ResourceWrites, WriteOrigin, Written } from './writes.ts'

/** All resources (`ResourceSet`): the targets of references, and the records that name a record. */
export interface KnownResources {
  all(): readonly ResourceDeclaration[]
  declarationOf(plural: string): ResourceDeclaration
  isDeclared(plural: string): boolean
  assertUnused(services: ResourceServices, origin: WriteOrigin, record: LeavingRecord): Promise<void>
  redirect(
    services: ResourceServices,
    origin: WriteOrigin,
    plural: string,
    id: string,
    heir: string | undefined,
    recordsMax?: number,
  ): Promise<Redirected>
}

export interface Redirected {
  wrote?: Wrote
  /** False when more records name it than were written. */
  isDone: boolean
}

export type ResourceServices = Pick<Services, 'log' | 'tables' | 'keyring' | 'processes' | 'quotas'> & {
  resources: KnownResources
}

export const VERBS = ['list', 'read', 'create', 'replace', 'amend', 'delete'] as const
export type Verb = (typeof VERBS)[number]

/** A write that is about to happen, for checks beyond the schema. */
export interface WriteContext {
  services: ResourceServices
  /** Absent where the service itself writes (such as the first hub of an organization). */
  caller?: UserCaller
  organizationId: string
  id: string
  /** ms since the epoch. */
  now: number
  /** All fields after the write. */
  values: JsonObject
  /** All fields before it; absent for a create. */
  before?: JsonObject
}

export interface PresentContext {
  services: ResourceServices
  caller: UserCaller
  /** ms since the epoch. */
  now: number
  /** Whether `?fields=` asks for the member, or for all: members that cost a lookup can be left out. */
  wants(member: string): boolean
  /** A list leaves out members that are too costly for many rows, however few it has. */
  isList: boolean
}

/** A value that the service makes for a record and shows once: a key, a secret. */
export interface ToldOnce {
  /** The member of the answer that shows it. */
  member: string
  example: string
  /** `kept` are values of internal fields, such as a hash. The same seed makes the same: a repeat tells the first. */
  make(id: string, services: ResourceServices, seed: string): { told: string; kept: JsonObject }
  /** Adds `POST /<noun>/{id}/<path>`, which makes another one; the one before ends at once. */
  rotation?: { path: string; operationId: string; summary: string }
}

export interface ActionContext {
  request: RouteRequest<object, JsonObject>
  /** With defaults, in the stored form. */
  body: JsonObject
  origin: WriteOrigin & { caller: UserCaller }
  id: string
  /** As the table has it; the caller sees it. */
  row: Row
  writes: ResourceWrites
  services: ResourceServices
}

/** A value that only one record of an organization may have. */
export interface UniqueValue {
  /** Scope of its uniqueness. */
  key: string
  value: string
  /** The path that a refusal names, without the slash before it. */
  field: string
}

/** `POST /<noun>/{id}/<path>`. */
export interface ResourceAction {
  path: string
  operationId: string
  summary: string
  /** Default: the permission of edits. */
  permission?: string
  /** Absent: it takes no body. */
  body?: Fields
  bodyExample?: JsonObject
  /** Default: the resource. */
  answer?: Answer
  /** A written row is answered as every write is; anything else is sent as it is. */
  run(context: ActionContext): Promise<Written | Reply>
}

/** Differences between bodies and records. */
export interface BodyDeclaration {
  /** Members of bodies that records do not keep (a password, a user's teams): for the feature's own writes. */
  accepts?: Fields
  /** As `accepts`, for PATCH alone. */
  amends?: Fields
  bytesMax?: number
  /** Pointers to the internal fields that bodies have elsewhere, for errors. */
  paths?: { readonly [field: string]: string }
  /** The values in the form of a body, with the fields of `paths` where it has them: a PATCH is merged with this. */
  of?(values: JsonObject): JsonObject
}

/** Fields that are stored encrypted, or as a hash. */
export interface SecretsDeclaration {
  /** Fields that are stored encrypted and never answered; left out of a PUT they keep their value. */
  writeOnly?: readonly string[]
  /** Fields stored encrypted, in rows too, and answered: `present` removes those that nobody may read. */
  sealed?: readonly string[]
  told?: ToldOnce
}

/** Storage and indexes of its rows. */
export interface TableRows {
  /** Beside `_id`, `createdAt` and `updatedAt`: `range` fields sort lists, `equality` fields filter them, `text` serves `q`; `sparse` ones are bounded only. */
  indexes?: Pick<TableDeclaration, 'equality' | 'range' | 'sparse' | 'text'>
  /** Raise it when the shape of rows changes: only its table is then rebuilt. */
  version?: number
  /** Requests about other records ask for its rows (`TableDeclaration`). */
  isShared?: true
  /** Members of the row derived from its values; internal unless `readOnly` has them. */
  derived?(values: JsonObject): JsonObject
  /** Array members of the row that list the records of another resource which name it in a field. */
  links?: { [member: string]: { noun: string; field: string } }
}

/** Parameters of its list beside those of every list. */
export interface ListDeclaration {
  filters?: { [name: string]: ListFilter }
  /** Further parameters of the list, by patterns of their names; the routes give them their meaning. */
  patterns?: { [pattern: string]: JsonSchema }
  /** Orders of the list whose name in `sortBy` differs from their `range` field, by that name. */
  sorts?: { [name: string]: string }
  /** Members of `readOnly` that `present` adds and that the list can filter by nevertheless: it is walked then. */
  computed?: readonly string[]
  /** The member in which `derived` lists the names that the record lacks, so that `null` finds them by an index. */
  absent?: Absent
}

/** Values that only one record of an organization may have. */
export interface UniqueDeclaration {
  /** A field whose value (case aside) only one record of an organization may have. */
  field?: string
  /** Further such values, which only the record can tell; and the record without those that another one has. */
  values?(values: JsonObject): readonly UniqueValue[]
  without?(values: JsonObject, field: string): JsonObject
}

/** Conditions and effects of a deletion. */
export interface DeletionDeclaration {
  /**
   * Effect of a deletion on the records that name this one by a `reference`: `refuse` answers 409 with their kinds,
   * `takeOut` removes it from them, in the log; such references must be optional or lists.
   */
  whenReferenced?: 'refuse' | 'takeOut'
  /** A deletion takes `?erase=true`: the feature's own writes then erase it from the log and the history too. */
  erasable?: boolean
  /** A deletion takes `?replaceWith=<id>`: records that name this one then name that one. */
  replaceable?: boolean
  /** Refuses a deletion; `replaceWith` is the row that replaces it where it is named. */
  check?(write: WriteContext, replaceWith?: Row): Promise<void>
  /** A record that keeps naming a deleted one of that resource: nothing is taken out of it. */
  keepsNaming?(values: JsonObject, plural: string): boolean
}

/** Rules that a schema cannot express. */
export interface RulesDeclaration {
  /** Brings valid values into their stored form, where that takes more than one field or other services. */
  keep?(write: WriteContext): Promise<JsonObject>
  /** Refuses a write that passes schema and references. Called again when another writer was faster. */
  checks?(write: WriteContext): Promise<void>
  /** Merges a patch, where RFC 7396 alone would make something invalid. */
  merge?(before: JsonObject, patch: JsonObject): JsonObject
}

export interface ResourceDeclaration {
  /** Also the category of its streams and the beginning of its event types, in camel case: `exportConfig`. */
  noun: string
  /** Also the name of its table, and the argument of `reference()`. */
  plural: string
  tag: string
  /** Default `/<noun>` and `/<plural>`. */
  paths?: { one: string; many: string }
  /** Default all of them. */
  verbs?: readonly Verb[]
  fields: Fields
  /** Fields that a create sets for good: another value in a PUT or PATCH is refused. */
  fixed?: readonly string[]
  /** Fields of the row that no client writes: accepted and ignored in PUT and PATCH, refused in POST. */
  readOnly?: Fields
  /** Messages for those of `readOnly` of which a PUT or PATCH with another value is refused, by their names. */
  guarded?: { readonly [field: string]: string }
  /** Fields that are stored and never answered, filtered or sorted by: the service sets them. */
  internal?: Fields
  permissions: { view: string; edit: string }
  body?: BodyDeclaration
  secrets?: SecretsDeclaration
  table?: TableRows
  list?: ListDeclaration
  unique?: UniqueDeclaration
  deletion?: DeletionDeclaration
  rules?: RulesDeclaration
  /** The field of the row that names its hub or hubs; the resource then exists only for users who have one of them. */
  hubField?: string
  /** Users of its hub who see a record; left out, all of them. */
  audience?: Audience
  /** Fields that only the person sees whose record it is: its `_id` is that of a user. */
  personal?: Personal
  rollout?: 'geofences'
  /** The id is derived from a value of `fields`, where present; under it a deleted record can be made again. */
  idFrom?: { field: string; idOf(organizationId: string, value: string): string }
  /** A whole body of a create, for the documentation; the tests send it. */
  example: JsonObject
  /** Adds members known only at answer time, such as a status that depends on the time; a whole page at once. */
  present?(rows: readonly Row[], context: PresentContext): Promise<Row[]> | Row[]
  actions?: readonly ResourceAction[]
  /** Consumers that the reply to a write waits for, beside the tables that it feeds. */
  settles?(write: { id: string; kind: 'write' | 'delete' }): readonly Settlement[]
}
