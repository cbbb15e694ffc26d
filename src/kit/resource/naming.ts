import { baseOf, type EventLog } from '../../engines/event-log.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import { eventTypes } from '../commands/declared-event.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import type { RecordRef } from './writes.ts'
import { heldBy, NAMES_NOTHING, type Reference, referencesOf } from './references.ts'

/*
 * A write that starts to name a record, and the deletion of that record, at once: each looks at tables that do not have
 * the other one yet. In one process they are kept apart here, for records that cannot be deleted while they are named.
 * Another process may still name one at that very moment: then its deletion is taken back (reactors/references).
 */

/** Announces the values after a write. @throws Failure invalid where it starts to name a record deleted meanwhile */
export type NameIn = (values: JsonObject, before: JsonObject | undefined) => Promise<void>

const NAMERS_MAX = 20
const KEPT_MIN = 5_000

/** A record of one kind: clients choose ids, so records of several kinds may share one. */
const keyOf = (plural: string, id: string): string => `${plural} ${id}`

/** Work under way on each record, and waiters for its end. */
class UnderWay {
  private readonly byKey = new Map<string, { count: number; waiting: (() => void)[] }>()

  begin(key: string): void {
    const known = this.byKey.get(key)
    if (known === undefined) this.byKey.set(key, { count: 1, waiting: [] })
    else known.count++
  }

  end(key: string): void {
    const known = this.byKey.get(key)
    if (known === undefined || --known.count > 0) return
    this.byKey.delete(key)
    for (const go of known.waiting) go()
  }

  isBusy(key: string): boolean {
    return this.byKey.has(key)
  }

  /** Other work may have begun when it resolves. */
  async idle(key: string): Promise<void> {
    const known = this.byKey.get(key)
    if (known !== undefined) await new Promise<void>((go) => known.waiting.push(go))
  }
}

/** Names in the writes of one process, by the key of the named record. */
class Names {
  private readonly writes = new UnderWay()
  private readonly deletions = new UnderWay()
  private readonly deleted = new RecentMap<string, boolean>(KEPT_MIN)
  /** The latest records to name it: the tables may not have them yet. */
  private readonly lately = new RecentMap<string, readonly RecordRef[]>(KEPT_MIN, ({ length }) => length)

  /** False for a deleted record. A deletion under way is awaited: the record may stay. */
  async begin(key: string): Promise<boolean> {
    while (this.deletions.isBusy(key)) await this.deletions.idle(key)
    if (this.deleted.get(key) === true) return false
    this.writes.begin(key)
    return true
  }

  /** `namer` is absent where nothing was written. */
  end(key: string, namer: RecordRef | undefined): void {
    if (namer !== undefined) this.lately.set(key, [...(this.lately.get(key) ?? []), namer].slice(-NAMERS_MAX))
    this.writes.end(key)
  }

  restored(key: string): void {
    this.deleted.set(key, false)
  }

  /** No record starts to name it while it is deleted; `remove` gets those that did lately. */
  async without<Done>(key: string, remove: (lately: readonly RecordRef[]) => Promise<Done>): Promise<Done> {
    this.deletions.begin(key)
    try {
      while (this.writes.isBusy(key)) await this.writes.idle(key)
      const done = await remove(this.lately.get(key) ?? [])
      this.deleted.set(key, true)
      return done
    } finally {
      this.deletions.end(key)
    }
  }
}

const ofLogs = new WeakMap<object, Names>()

const namesOf = (log: EventLog): Names => {
  const base = baseOf(log)
  const names = ofLogs.get(base) ?? new Names()
  ofLogs.set(base, names)
  return names
}

/** The names in the writes of one resource, and the deletions of its records. */
export class Naming {
  private readonly declaration: ResourceDeclaration
  private readonly services: ResourceServices
  /** Fields whose records cannot be deleted while they are named. */
  private fields: readonly Reference[] | undefined

  constructor(declaration: ResourceDeclaration, services: ResourceServices) {
    this.declaration = declaration
    this.services = services
  }

  /** Runs a write, which announces its names before it is appended. */
  async write<Handled extends { wrote?: unknown }>(
    id: string,
    run: (nameIn: NameIn) => Promise<Handled>,
  ): Promise<Handled> {
    const names = namesOf(this.services.log)
    const begun = new Set<string>()
    const nameIn: NameIn = async (values, before) => {
      const fields = this.newlyNamed(values, before)
      if ([...fields.keys()].every((key) => begun.has(key))) return
      // All in one order, also where a write is decided again: two that wait for each other's names would deadlock.
      const keys = [...new Set([...begun, ...fields.keys()])].sort()
      for (const key of begun) names.end(key, undefined)
      begun.clear()
      for (const key of keys) {
        const reference = fields.get(key)
        const isThere =
          (await names.begin(key)) || (reference !== undefined && (await this.beginRestored(key, reference.target)))
        if (isThere) begun.add(key)
        else if (reference !== undefined)
          throw invalid(this.declaration.body?.paths?.[reference.field] ?? `/${reference.field}`, NAMES_NOTHING)
      }
    }
    let namer: RecordRef | undefined
    try {
      const handled = await run(nameIn)
      if (handled.wrote !== undefined) namer = { plural: this.declaration.plural, id }
      return handled
    } finally {
      for (const key of begun) names.end(key, namer)
    }
  }

  /** Runs a deletion, which gets the records that started to name this one lately. */
  deletion<Done>(id: string, remove: (lately: readonly RecordRef[]) => Promise<Done>): Promise<Done> {
    const { idFrom, plural, deletion } = this.declaration
    // `takeOut` looks for names again later; under a derived id the record may be made again.
    if (deletion?.whenReferenced === 'takeOut' || idFrom !== undefined) return remove([])
    return namesOf(this.services.log).without(keyOf(plural, id), remove)
  }

  /** The same for a record that another process has restored since it was deleted here. */
  private async beginRestored(key: string, target: string): Promise<boolean> {
    const { log, resources } = this.services
    const { noun } = resources.declarationOf(target)
    const [last] = await log.read(`${noun}-${key.slice(target.length + 1)}`, 'end', 1, 'backwards')
    // The stream of a deleted record may end with an event that only keeps others from writing at its place.
    if (last?.type !== eventTypes(noun).changed) return false
    const names = namesOf(log)
    names.restored(key)
    return names.begin(key)
  }

  /** Keys of the records that the values newly name, each with the first reference that names it. */
  private newlyNamed(values: JsonObject, before: JsonObject | undefined): Map<string, Reference> {
    const fields = new Map<string, Reference>()
    for (const reference of this.neededFields()) {
      const known = heldBy(reference, before ?? {})
      for (const id of heldBy(reference, values)) {
        const key = keyOf(reference.target, id)
        if (!known.includes(id) && !fields.has(key)) fields.set(key, reference)
      }
    }
    return fields
  }

  private neededFields(): readonly Reference[] {
    const { resources } = this.services
    this.fields ??= referencesOf(this.declaration)
      .filter(({ target }) => resources.isDeclared(target))
      .filter(({ target }) => resources.declarationOf(target).deletion?.whenReferenced !== 'takeOut')
    return this.fields
  }
}
