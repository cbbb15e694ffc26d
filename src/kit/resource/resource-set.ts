import { pagesOf } from '../../engines/table-store.ts'
import { Failure, type FieldError, unlessGone } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { severalAtOnce } from '../commands/several-at-once.ts'
import { allWrote } from '../commands/wrote.ts'
import { seesRow, valuesOf } from '../http/list-query.ts'
import type { Wrote } from '../http/route.ts'
import type { KnownResources, Redirected, ResourceDeclaration, ResourceServices } from './declaration.ts'
import { pathsOf, words } from './answers.ts'
import { heldBy, type Reference, referencesOf } from './references.ts'
import { ResourceWriter } from './write.ts'
import { asService, type LeavingRecord, type RecordRef, type WriteOrigin } from './writes.ts'

/** A resource whose records name those of another one in a field. */
interface NamingField extends Reference {
  declaration: ResourceDeclaration
}

const PAGE_ROWS = 200
const AT_ONCE = 16
/** Largest number of users of a record that are named one by one, of each kind. */
const NAMED_MAX = 5

/** All resources, so that a reference is known from both sides: its target, and the records that name it. */
export class ResourceSet implements KnownResources {
  private readonly declarations: ReadonlyMap<string, ResourceDeclaration>
  private readonly namers = new Map<string, NamingField[]>()

  /** @throws Error for a reference to no resource, or one that a deletion could not take out. */
  constructor(resources: readonly { declaration: ResourceDeclaration }[]) {
    this.declarations = new Map(resources.map(({ declaration }) => [declaration.plural, declaration]))
    for (const declaration of this.declarations.values())
      for (const reference of referencesOf(declaration)) this.add({ ...reference, declaration })
  }

  all(): readonly ResourceDeclaration[] {
    return [...this.declarations.values()]
  }

  /** The resource that `reference(plural)` means. */
  declarationOf(plural: string): ResourceDeclaration {
    const declaration = this.declarations.get(plural)
    if (declaration === undefined) throw new Error(`there is no resource ${plural}`)
    return declaration
  }

  isDeclared(plural: string): boolean {
    return this.declarations.has(plural)
  }

  /** Resources whose records cannot be deleted while they are named. Under a derived id one may be made again. */
  held(): ResourceDeclaration[] {
    return [...this.declarations.values()].filter(
      ({ plural, deletion, idFrom }) =>
        deletion?.whenReferenced !== 'takeOut' && idFrom === undefined && this.namers.has(plural),
    )
  }

  /** Resources whose records a deletion takes out of the records that name them. */
  takenOut(): ResourceDeclaration[] {
    return [...this.declarations.values()].filter(({ deletion }) => deletion?.whenReferenced === 'takeOut')
  }

  /** @throws Failure conflict that names the record's users, when its resource refuses deletion then. */
  async assertUnused(
    services: ResourceServices,
    origin: WriteOrigin,
    { plural, id, lately }: LeavingRecord,
  ): Promise<void> {
    if (this.declarationOf(plural).deletion?.whenReferenced === 'takeOut') return
    const errors: FieldError[] = []
    const users: string[] = []
    for (const namer of this.namers.get(plural) ?? []) {
      const { declaration } = namer
      const question = { where: holding(namer, id), limit: NAMED_MAX, total: true }
      const { rows, total = 0 } = await services.tables.find(declaration.plural, origin.organizationId, question)
      if (total === 0) continue
      users.push(`${total} ${words(total === 1 ? declaration.noun : declaration.plural)}`)
      errors.push(...usesOf(origin, namer, rows, total))
    }
    for (const holder of errors.length > 0 ? [] : lately)
      if ((await this.holds(services, holder, { plural, id })) === true)
        throw new Failure('conflict', { message: 'It has just come into use.' })
    if (errors.length === 0) return
    throw new Failure('conflict', { message: `It is still in use by ${users.join(', ')}.`, errors })
  }

  /** A record that prevents the deletion of another one: the tables know it, and its own stream agrees. */
  async holderOf(services: ResourceServices, organizationId: string, named: RecordRef): Promise<RecordRef | undefined> {
    for (const namer of this.namers.get(named.plural) ?? []) {
      const { plural } = namer.declaration
      const question = { where: holding(namer, named.id), limit: NAMED_MAX }
      const { rows } = await services.tables.find(plural, organizationId, question)
      for (const { id } of rows)
        if ((await this.holds(services, { plural, id }, named)) !== false) return { plural, id }
    }
    return undefined
  }

  /**
   * Makes every record that names `id` name `heir` instead, or nothing without one: in the log, each by a write of its
   * own, at most `recordsMax` of them. Repeating it changes nothing.
   */
  async redirect(
    services: ResourceServices,
    origin: WriteOrigin,
    plural: string,
    id: string,
    heir: string | undefined,
    recordsMax = Number.POSITIVE_INFINITY,
  ): Promise<Redirected> {
    let wrote: Wrote | undefined
    let left = recordsMax
    for (const { declaration, field } of this.namers.get(plural) ?? []) {
      const writer = new ResourceWriter(declaration, services)
      const question = { where: { [field]: id }, limit: PAGE_ROWS }
      for await (const rows of pagesOf(services.tables, declaration.plural, origin.organizationId, question)) {
        await severalAtOnce(rows.slice(0, left), AT_ONCE, async (namer) => {
          wrote = allWrote(wrote, await redirectOne(writer, origin, namer.id, { plural, id }, heir))
        })
        left -= rows.length
        if (left < 0) return { wrote, isDone: false }
      }
    }
    return { wrote, isDone: true }
  }

  /** By the holder's own stream, or its row where as new; undefined where the stream's events have another form. */
  private async holds(services: ResourceServices, holder: RecordRef, named: RecordRef): Promise<boolean | undefined> {
    const { state, version } = await new ResourceWriter(this.declarationOf(holder.plural), services).load(holder.id)
    if (state.status === 'absent') return undefined
    const row = await services.tables.get<Row>(holder.plural, state.organizationId, holder.id)
    const values = row?.version === version ? row : state.values
    const references = (this.namers.get(named.plural) ?? []).filter(
      ({ declaration }) => declaration.plural === holder.plural,
    )
    return state.status === 'live' && references.some((one) => heldBy(one, values).includes(named.id))
  }

  private add(namer: NamingField): void {
    const { target, field, declaration, namesWhile } = namer
    const { whenReferenced = 'refuse', replaceable = false } = this.declarationOf(target).deletion ?? {}
    if (namesWhile !== undefined && (whenReferenced === 'takeOut' || replaceable))
      throw new Error(`${declaration.noun}.${field} may name only what is neither taken out nor replaced`)
    if (whenReferenced === 'takeOut' && !namer.isOptional)
      throw new Error(`${declaration.noun}.${field} must be optional or a list: ${target} are taken out of it`)
    this.namers.set(target, [...(this.namers.get(target) ?? []), namer])
  }
}

/** Condition on the records that prevent a deletion. */
const holding = ({ field, namesWhile }: Reference, id: string) => ({ ...namesWhile, [field]: id })

/** The records that use one, by name where the caller sees them. */
const usesOf = (
  { caller }: WriteOrigin,
  { declaration, field }: NamingField,
  rows: readonly { id: string; row: Row }[],
  total: number,
): FieldError[] => {
  const { one, many } = pathsOf(declaration)
  const { permissions } = declaration
  const seen = rows.filter(
    ({ row }) =>
      caller === undefined || (caller.permissions.has(permissions.view) && seesRow(caller, row, declaration)),
  )
  const place = publicName(declaration, field)
  const errors = seen.map(({ id }) => ({ path: `${one}/${id}`, message: `names it${place}` }))
  const others = total - seen.length
  return others === 0 ? errors : [...errors, { path: many, message: `${others} more name it${place}` }]
}

/** Path at which a client sees a reference; nothing for an invisible one. */
const publicName = ({ body, internal = {} }: ResourceDeclaration, field: string): string => {
  const path = body?.paths?.[field]?.slice(1).replaceAll('/', '.') ?? (field in internal ? undefined : field)
  return path === undefined ? '' : ` in ${path}`
}

const redirectOne = async (
  writer: ResourceWriter,
  origin: WriteOrigin,
  namerId: string,
  { plural, id }: RecordRef,
  heir: string | undefined,
): Promise<Wrote | undefined> => {
  // A record of another kind may have the same id.
  const fields = referencesOf(writer.declaration).flatMap(({ field, target }) => (target === plural ? [field] : []))
  const next = (values: JsonObject): JsonObject =>
    heir === undefined && writer.declaration.deletion?.keepsNaming?.(values, plural) === true
      ? values
      : fields.reduce((changed, field) => redirected(changed, field, id, heir), values)
  return (await unlessGone(writer.update(asService(origin), namerId, next)))?.wrote
}

const redirected = (values: JsonObject, field: string, id: string, heir: string | undefined): JsonObject => {
  if (!valuesOf(values, field).includes(id)) return values
  const { [field]: value, ...others } = values
  if (!Array.isArray(value)) return heir === undefined ? others : { ...others, [field]: heir }
  const left = value.filter((one) => one !== id && one !== heir)
  return { ...others, [field]: heir === undefined ? left : [...left, heir] }
}
