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

/** All resources that there are (`ResourceSet`): what a reference names, and what names a record. */
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

/** What resources need of the services. */
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
  /** All fields as they will be. */
  values: JsonObject
  /** As they were; absent for a create. */
  before?: JsonObject
}

/** Rows that are about to be answered. */
export interface PresentContext {
  services: ResourceServices
  caller: UserCaller
  /** ms since the epoch. */
  now: number
  /** Whether `?fields=` asks for the member, or for all: what costs a lookup can be left out. */
  wants(member: string): boolean
}

/** What the service makes for a record and says once: a key, a secret. */
export interface ToldOnce {
  /** The member of the answer that says it. */
  member: string
  example: string
  /** `kept` are values of internal fields, such as a hash. The same seed makes the same: a repeated request has the one of the first. */
  make(id: string, services: ResourceServices, seed: string): { told: string; kept: JsonObject }
  /** Makes `POST /<noun>/{id}/<path>`, which makes another one; the one before ends at once. */
  rotation?: { path: string; operationId: string; summary: string }
}

export interface ActionContext {
  request: RouteRequest<object, JsonObject>
  /** With defaults, in the form that is kept. */
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
  /** What it is unique among. */
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
  /** Default: that of edits. */
  permission?: string
  /** Absent: it takes no body. */
  body?: Fields
  bodyExample?: JsonObject
  /** Default: the resource. */
  answer?: Answer
  /** A written row is answered as every write is; anything else is a reply as it stands. */
  run(context: ActionContext): Promise<Written | Reply>
}

/** What bodies hold otherwise than records. */
export interface BodyDeclaration {
  /** What bodies say and the record does not keep (a password, a user's teams): the feature's own writes take it. */
  accepts?: Fields
  /** As `accepts`, for PATCH alone. */
  amends?: Fields
  bytesMax?: number
  /** Pointers to the internal fields that bodies hold elsewhere, for errors. */
  paths?: { readonly [field: string]: string }
  /** The values in the form of a body, with the fields of `paths` where it holds them: a PATCH is merged with this. */
  of?(values: JsonObject): JsonObject
}

/** What is stored encrypted, or as a hash. */
export interface SecretsDeclaration {
  /** Fields that are stored encrypted and never answered; left out of a PUT they keep their value. */
  writeOnly?: readonly string[]
  /** Fields that are stored encrypted, in rows too, and answered: `present` takes away what nobody may read. */
  sealed?: readonly string[]
  told?: ToldOnce
}

/** How its rows are kept and found. */
export interface TableRows {
  /** Beside `_id`, `createdAt` and `updatedAt`: `range` fields sort lists, `equality` fields filter them, `text` serves `q`; `sparse` ones are bounded only. */
  indexes?: Pick<TableDeclaration, 'equality' | 'range' | 'sparse' | 'text'>
  /** Raise it when the shape of rows changes: its table alone is then built anew. */
  version?: number
  /** Requests about other records ask for its rows (`TableDeclaration`). */
  isShared?: true
  /** Members of the row that follow from its values; internal unless `readOnly` has them. */
  derived?(values: JsonObject): JsonObject
  /** Array members of the row that list the records of another resource which name it in a field. */
  links?: { [member: string]: { noun: string; field: string } }
}

/** What its list takes beside the parameters of every list. */
export interface ListDeclaration {
  filters?: { [name: string]: ListFilter }
  /** Further parameters of the list, by patterns of their names; the routes say what they mean. */
  patterns?: { [pattern: string]: JsonSchema }
  /** Orders of the list that clients call otherwise than their `range` field, by what `sortBy` calls them. */
  sorts?: { [name: string]: string }
  /** Members of `readOnly` that `present` adds and the list filters by all the same: it is walked then. */
  computed?: readonly string[]
  /** The member that `derived` makes of the names of those that the record lacks, so that `null` finds them by an index. */
  absent?: Absent
}

/** Values that only one record of an organization may have. */
export interface UniqueDeclaration {
  /** A field whose value (case aside) only one record of an organization may have. */
  field?: string
  /** Values of that kind that only the record itself knows; and the record without having taken one, where another has it. */
  values?(values: JsonObject): readonly UniqueValue[]
  without?(values: JsonObject, field: string): JsonObject
}

/** What a deletion asks and does. */
export interface DeletionDeclaration {
  /**
   * What a deletion does to the records that name this one by a `reference`: `refuse` answers 409 with what they are,
   * `takeOut` takes it out of them, in the log; such references must be optional or lists.
   */
  whenReferenced?: 'refuse' | 'takeOut'
  /** A deletion takes `?erase=true`: the feature's own writes take it away from the log and the history too. */
  erasable?: boolean
  /** A deletion takes `?replaceWith=<id>`: records that name this one name that one from then on. */
  replaceable?: boolean
  /** Refuses a deletion; `replaceWith` is the row that takes its place in what names it. */
  check?(write: WriteContext, replaceWith?: Row): Promise<void>
  /** A record that goes on naming a deleted one of that resource: nothing is taken out of it. */
  keepsNaming?(values: JsonObject, plural: string): boolean
}

/** Rules that a schema cannot say. */
export interface RulesDeclaration {
  /** Brings valid values into the form in which they are kept, where that takes more than one field or other services. */
  keep?(write: WriteContext): Promise<JsonObject>
  /** Refuses a write that neither schema nor references refuse. Called again when somebody else was faster. */
  checks?(write: WriteContext): Promise<void>
  /** What the whole of a merge patch is made of, where RFC 7396 alone would make something invalid. */
  merge?(before: JsonObject, patch: JsonObject): JsonObject
}

export interface ResourceDeclaration {
  /** Also the category of its streams and the beginning of its event types, in camel case: `exportConfig`. */
  noun: string
  /** Also the name of its table, and what `reference()` names. */
  plural: string
  tag: string
  /** Default `/<noun>` and `/<plural>`. */
  paths?: { one: string; many: string }
  /** Default all of them. */
  verbs?: readonly Verb[]
  fields: Fields
  /** Those of `fields` that a create sets for good: another value in a PUT or PATCH is refused. */
  fixed?: readonly string[]
  /** Fields of the row that no client writes: accepted and ignored in PUT and PATCH, refused in POST. */
  readOnly?: Fields
  /** Sentences about those of `readOnly` of which a PUT or PATCH with another value is refused, by their names. */
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
  /** Which of its fields are for the person alone whose record it is: its `_id` is that of a user. */
  personal?: Personal
  rollout?: 'geofences'
  /** The id follows from a value of `fields`, where there is one; under it a deleted record can be made anew. */
  idFrom?: { field: string; idOf(organizationId: string, value: string): string }
  /** A whole body of a create, for the documentation; the tests send it. */
  example: JsonObject
  /** Adds what is known at answer time only, such as a status that depends on the time; a whole page at once. */
  present?(rows: readonly Row[], context: PresentContext): Promise<Row[]> | Row[]
  actions?: readonly ResourceAction[]
  /** What the reply to a write waits for, beside the tables that it feeds. */
  settles?(write: { id: string; kind: 'write' | 'delete' }): readonly Settlement[]
}
