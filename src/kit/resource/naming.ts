import type { EventLog } from '../../engines/event-log.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { RecentMap } from '../../kernel/recent-map.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import type { RecordRef } from './writes.ts'
import { NAMES_NOTHING, namedIn, referencesOf } from './references.ts'

/*
 * A write that comes to name a record, and the deletion of that record, at once: each looks at tables that do not have the
 * other one yet. In one process they are kept apart here, for records that cannot be deleted while something names them.
 * Another process may still name one at that very moment.
 */

/** Says what a write will make of the values. @throws Failure invalid where it comes to name what was deleted meanwhile */
export type NameIn = (values: JsonObject, before: JsonObject | undefined) => Promise<void>

const NAMERS_MAX = 20
const KEPT_MIN = 5_000

/** What goes on about each id, and who waits until nothing does. */
class UnderWay {
  private readonly byId = new Map<string, { count: number; waiting: (() => void)[] }>()

  begin(id: string): void {
    const known = this.byId.get(id)
    if (known === undefined) this.byId.set(id, { count: 1, waiting: [] })
    else known.count++
  }

  end(id: string): void {
    const known = this.byId.get(id)
    if (known === undefined || --known.count > 0) return
    this.byId.delete(id)
    for (const go of known.waiting) go()
  }

  async idle(id: string): Promise<void> {
    for (let known = this.byId.get(id); known !== undefined; known = this.byId.get(id)) {
      const { waiting } = known
      await new Promise<void>((go) => waiting.push(go))
    }
  }
}

/** What the writes of one process name, by the id that is named. */
class Names {
  private readonly writes = new UnderWay()
  private readonly deletions = new UnderWay()
  private readonly deleted = new RecentMap<string, true>(KEPT_MIN)
  /** Those who came to name it last: the tables may not have them yet. */
  private readonly lately = new RecentMap<string, readonly RecordRef[]>(KEPT_MIN, ({ length }) => length)

  /** False for what is deleted. What is being deleted is waited for: it may stay. */
  async begin(id: string): Promise<boolean> {
    await this.deletions.idle(id)
    if (this.deleted.get(id) === true) return false
    this.writes.begin(id)
    return true
  }

  /** `namer` is absent where nothing was written. */
  end(id: string, namer: RecordRef | undefined): void {
    if (namer !== undefined) this.lately.set(id, [...(this.lately.get(id) ?? []), namer].slice(-NAMERS_MAX))
    this.writes.end(id)
  }

  /** Nobody comes to name it while it is deleted; `remove` is told who did lately. */
  async without<Done>(id: string, remove: (lately: readonly RecordRef[]) => Promise<Done>): Promise<Done> {
    this.deletions.begin(id)
    try {
      await this.writes.idle(id)
      const done = await remove(this.lately.get(id) ?? [])
      this.deleted.set(id, true)
      return done
    } finally {
      this.deletions.end(id)
    }
  }
}

const ofLogs = new WeakMap<object, Names>()

const namesOf = (log: EventLog): Names => {
  const names = ofLogs.get(log) ?? new Names()
  ofLogs.set(log, names)
  return names
}

/** The names in the writes of one resource, and the deletions of its records. */
export class Naming {
  private readonly declaration: ResourceDeclaration
  private readonly services: ResourceServices
  /** Fields whose records are not deleted while something names them. */
  private fields: readonly string[] | undefined

  constructor(declaration: ResourceDeclaration, services: ResourceServices) {
    this.declaration = declaration
    this.services = services
  }

  /** Runs a write, which says what it names before it is appended. */
  async write<Handled extends { wrote?: unknown }>(
    id: string,
    run: (nameIn: NameIn) => Promise<Handled>,
  ): Promise<Handled> {
    const names = namesOf(this.services.log)
    const begun = new Set<string>()
    const nameIn: NameIn = async (values, before) => {
      for (const field of this.neededFields())
        for (const named of namedIn(values, field)) {
          if (begun.has(named) || (before !== undefined && namedIn(before, field).includes(named))) continue
          if (!(await names.begin(named)))
            throw invalid(this.declaration.bodyPaths?.[field] ?? `/${field}`, NAMES_NOTHING)
          begun.add(named)
        }
    }
    let namer: RecordRef | undefined
    try {
      const handled = await run(nameIn)
      if (handled.wrote !== undefined) namer = { plural: this.declaration.plural, id }
      return handled
    } finally {
      for (const named of begun) names.end(named, namer)
    }
  }

  /** Runs a deletion, which is told who came to name the record lately. */
  deletion<Done>(id: string, remove: (lately: readonly RecordRef[]) => Promise<Done>): Promise<Done> {
    const { idFrom, whenReferenced } = this.declaration
    // What is taken out is looked for again later; under an id that follows from a value it may be made anew.
    if (whenReferenced === 'takeOut' || idFrom !== undefined) return remove([])
    return namesOf(this.services.log).without(id, remove)
  }

  private neededFields(): readonly string[] {
    const { resources } = this.services
    this.fields ??= referencesOf(this.declaration)
      .filter(({ target }) => resources.isDeclared(target))
      .filter(({ target }) => resources.declarationOf(target).whenReferenced !== 'takeOut')
      .map(({ field }) => field)
    return this.fields
  }
}
