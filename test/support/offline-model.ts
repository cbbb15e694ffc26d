/** What the office does to a task that Ada has; `rival` has Bob do it all at once. */
export const CHANGES = ['cancel', 'assignBob', 'assignAda', 'moveAway', 'reopen', 'rival'] as const
export type Change = (typeof CHANGES)[number]

export const STEPS = ['start', 'file', 'finish'] as const
export type Step = (typeof STEPS)[number]

/** What is next: a step of the phone is done, or reaches the service. */
export type Move = { change: Change } | { does: Step } | { sends: Step }

/** Every order of two changes and three steps, each done and then sent in its turn. */
export const ordersOf = (first: Change, second: Change): Move[][] => {
  const rising = (least: readonly number[]): number[][] =>
    [0, 1, 2]
      .flatMap((a) => [0, 1, 2].flatMap((b) => [0, 1, 2].map((c) => [a, b, c])))
      .filter(([a, b, c]) => a <= b && b <= c)
      .filter((slots) => slots.every((slot, i) => slot >= least[i]))
  return rising([0, 0, 0]).flatMap((done) =>
    rising(done).map((sent) =>
      [0, 1, 2].flatMap((slot): Move[] => [
        ...STEPS.filter((_, i) => done[i] === slot).map((does) => ({ does })),
        ...STEPS.filter((_, i) => sent[i] === slot).map((sends) => ({ sends })),
        ...(slot === 0 ? [{ change: first }] : slot === 1 ? [{ change: second }] : []),
      ]),
    ),
  )
}

const CLOCKS_MS = 300_000

type Person = 'ada' | 'bob'

/** What the contract says of one task, told as a story: who had it when, when it was over, what holds. */
export class OfflineModel {
  state: 'new' | 'assigned' | 'inProgress' | 'finished' | 'cancelled' = 'assigned'
  people = new Set<Person>(['ada'])
  isAway = false
  hasFile = false
  startedBy?: Person
  finishedBy?: Person
  finishedAt?: number
  /** How often it became finished, and how many changes of the office were overtaken. */
  finishes = 0
  overtaken = 0
  private assignedAt: number
  private startedAt?: number
  private readonly starts: number[] = []
  private readonly had: { at: number; is: boolean }[]
  private readonly over: { at: number; is: 'open' | 'cancelled' | 'finished' }[] = []
  private readonly redone: number[] = []
  private changes: number[] = []

  constructor(now: number) {
    this.assignedAt = now
    this.had = [{ at: now, is: true }]
  }

  isAdas(): boolean {
    return this.people.has('ada') && !this.isAway
  }

  /** The status of the answer. */
  change(kind: Change, now: number): number {
    const isOver = this.state === 'cancelled' || this.state === 'finished'
    if (kind === 'reopen' ? !isOver : isOver) return 409
    if (kind === 'moveAway' && this.state === 'inProgress') return 409
    if (kind === 'moveAway' && this.isAway) return 200
    if (kind === 'assignAda' && this.isAway) return 400
    const before = [[...this.people].join(), this.isAway, this.state].join()
    if (kind === 'cancel') this.end('cancelled', now)
    else if (kind === 'reopen') this.reopen(now)
    else this.hand(kind, now)
    if (before !== [[...this.people].join(), this.isAway, this.state].join()) this.changes.push(now)
    if (this.had.at(-1)?.is !== this.isAdas()) this.had.push({ at: now, is: this.isAdas() })
    // What is done now comes after what a clock that is ahead said.
    if (kind === 'rival') this.finishBy('bob', Math.max(now, this.startedAt ?? now))
    return 200
  }

  step(kind: Step, at: number): number {
    if (kind === 'file') {
      const wasTheirs = this.wasAdas(at) && this.was(at, true) === 'open'
      const isTheirs = this.isAdas() && this.state !== 'cancelled' && this.state !== 'finished'
      if (!wasTheirs && !(isTheirs && at >= this.assignedAt - CLOCKS_MS)) return 409
      this.hasFile = true
      return 201
    }
    return kind === 'start' ? this.start(at) : this.finish(at)
  }

  private start(at: number): number {
    const isTheirs = this.isAdas() && this.state === 'assigned'
    const wasTheirs = this.wasAdas(at) && this.was(at) !== 'cancelled'
    if (isTheirs && (at >= this.assignedAt || (!wasTheirs && at >= this.assignedAt - CLOCKS_MS))) {
      this.state = 'inProgress'
      this.startedAt = Math.max(at, this.assignedAt)
    } else if (!wasTheirs) return 409
    this.starts.push(this.state === 'inProgress' ? (this.startedAt as number) : at)
    if (this.state === 'inProgress' || (this.state === 'cancelled' && this.startedBy === undefined))
      this.startedBy = 'ada'
    return 200
  }

  private finish(at: number): number {
    const isTheirs = this.isAdas() && this.state === 'inProgress'
    const began = this.startedAt as number
    const since = this.redone.findLast((ms) => ms <= at) ?? 0
    const hadStarted = this.starts.some((ms) => ms <= at && ms >= since)
    const wasTheirs = this.wasAdas(at) && this.was(at) !== 'cancelled' && hadStarted
    const isNow = isTheirs && (at >= began || (!wasTheirs && at >= began - CLOCKS_MS))
    if (!isNow && !wasTheirs) return 409
    if (!isNow && (this.state === 'finished' || this.redone.some((ms) => ms > at))) return 200
    if (!this.hasFile) return 400
    const moment = isNow ? Math.max(at, began) : at
    if (!isNow) this.overtaken += this.changes.filter((ms) => ms > moment).length
    this.finishBy('ada', moment)
    return 200
  }

  private hand(kind: Change, now: number): void {
    if (kind === 'moveAway') this.isAway = true
    const kept = this.people.has('bob') ? ['bob' as const] : []
    const next = new Set<Person>(kind === 'moveAway' ? kept : kind === 'assignAda' ? ['ada'] : ['bob'])
    const isSame = [...next].join() === [...this.people].join()
    this.people = next
    if (this.state === 'inProgress') return
    this.state = next.size === 0 ? 'new' : 'assigned'
    if (!isSame || kind !== 'moveAway') this.assignedAt = isSame ? this.assignedAt : now
  }

  private reopen(now: number): void {
    if (this.state === 'finished') this.redone.push(now)
    if (this.isAway) this.people.delete('ada')
    this.state = this.people.size === 0 ? 'new' : 'assigned'
    this.assignedAt = now
    this.startedAt = this.startedBy = this.finishedAt = this.finishedBy = undefined
    this.over.push({ at: now, is: 'open' })
  }

  private finishBy(who: Person, at: number): void {
    if (who === 'bob') this.hasFile = true
    if (who === 'ada' || this.startedBy === undefined) this.startedBy = who
    this.finishedBy = who
    this.finishedAt = at
    this.finishes++
    this.end('finished', at)
  }

  private end(is: 'cancelled' | 'finished', at: number): void {
    this.state = is
    this.over.push({ at, is })
  }

  private wasAdas = (at: number): boolean => this.had.findLast((one) => one.at <= at)?.is ?? false

  /** What it was at a time; `isLate` says that the moment of an end still belongs to what was before. */
  private was(at: number, isLate = false): 'open' | 'cancelled' | 'finished' {
    const past = this.over.filter((one) => (isLate && one.is === 'finished' ? one.at < at : one.at <= at))
    return past.sort((a, b) => a.at - b.at).at(-1)?.is ?? 'open'
  }
}
