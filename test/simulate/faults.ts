import { matcherCheckpoint } from '../../src/features/transitions/events.ts'
import { MATCHER_STATE } from '../../src/reactors/matcher/store.ts'
import { type Host, PARTITIONS, type World } from './host.ts'
import { BEGUN_MS } from './timeline.ts'
import { NO_TROUBLE, type Trouble } from './wire.ts'

export const FAULTS = [
  'crash',
  'stop',
  'freeze',
  'clock',
  'cutOff',
  'engine',
  'tablesLost',
  'stateLost',
  'leaseLost',
  'snag',
] as const
export type Fault = (typeof FAULTS)[number]

/** Below the age at which automations skip events, and below ten minutes ahead. */
const CLOCK_MS_MAX = 120_000
const LOST_MS_MAX = 800
/** Whoever writes learns after three seconds that there was no answer, and writes again. */
const LOST_END_MS_MAX = 8_000
const ENGINES = ['log', 'tables', 'history'] as const
/** What the writes concern that a snag catches, by how it begins. */
const SNAGGED = {
  log: ['locations-', 'locations-', 'transitions-', 'automation-runs-', ''],
  tables: ['latest-position-', 'latest-position-', 'matcher-', ''],
} as const

/** Writes that a snag lets through: a commit has up to four. */
const PASSING = [0, 0, 1, 2, 3]

/** The processes of a run, each on a node of its own, and what happens to them. */
export class Cluster {
  readonly hosts: Host[] = []
  /** Kinds of faults that happened. */
  readonly happened: Fault[] = []
  private readonly world: World
  private readonly make: (node: number, life: number) => Host
  private readonly lives: number[] = []
  private isHealed = false

  constructor(world: World, make: (node: number, life: number) => Host) {
    this.world = world
    this.make = make
  }

  start(node: number): void {
    const { timeline } = this.world
    const host = this.make(node, (this.lives[node] = (this.lives[node] ?? 0) + 1))
    this.hosts[node] = host
    timeline.trace(`start ${node}`)
    timeline.after(0, () => void host.open().catch((error: unknown) => this.failed(node, host, error)), host)
  }

  /** Has so many faults happen up to a time. */
  plan(kinds: readonly Fault[], count: number, untilMs: number): void {
    if (kinds.length === 0) return
    const { timeline } = this.world
    for (let i = 0; i < count; i++) {
      const kind = timeline.pick(kinds)
      timeline.after(timeline.between(0, untilMs), () => this.happen(kind))
    }
  }

  /** Ends all that is wrong: what is down is started, what stands goes on. */
  heal(): void {
    this.isHealed = true
    const { timeline, troubles, snags, receiver } = this.world
    timeline.trace('heal')
    for (const engine of ENGINES) {
      troubles[engine] = { ...NO_TROUBLE }
      snags[engine].end()
    }
    receiver.failing = 0
    for (const [node, host] of this.hosts.entries()) {
      for (const engine of ENGINES) host.troubles[engine] = { ...NO_TROUBLE }
      if (host.state === 'stands') timeline.goOn(host)
      if (host.state === 'dead') this.start(node)
    }
  }

  private happen(kind: Fault): void {
    if (this.isHealed) return
    const { timeline } = this.world
    const node = timeline.between(0, this.hosts.length - 1)
    const host = this.hosts[node]
    timeline.trace(`fault ${kind} ${node}`)
    if (host.state !== 'runs') return
    this.happened.push(kind)
    if (kind === 'crash') this.crash(node, host)
    if (kind === 'stop') this.stop(node, host)
    if (kind === 'freeze') this.freeze(host)
    if (kind === 'snag') this.snag(node, host)
    if (kind === 'clock') host.wallShiftMs = timeline.between(-CLOCK_MS_MAX, CLOCK_MS_MAX)
    if (kind === 'cutOff') this.trouble(host.troubles)
    if (kind === 'engine') this.trouble(this.world.troubles)
    if (kind === 'tablesLost') {
      this.world.rows.loseSince(BEGUN_MS + timeline.nowMs - timeline.between(1, LOST_MS_MAX))
      for (const one of this.hosts) one.tables?.tellLoss()
    }
    if (kind === 'stateLost') this.loseState()
    if (kind === 'leaseLost') this.loseLease(host)
  }

  /** The tables forget what the matcher stored. */
  private loseState(): void {
    const { rows } = this.world
    for (let partition = 0; partition < PARTITIONS; partition++)
      rows.reset([MATCHER_STATE.name], matcherCheckpoint(partition))
    for (const one of this.hosts) one.tables?.tellLoss()
  }

  private crash(node: number, host: Host): void {
    host.kill()
    this.restart(node, host)
  }

  private freeze(host: Host): void {
    const { timeline } = this.world
    host.state = 'stands'
    timeline.after(timeline.between(500, 25_000), () => host.state === 'stands' && timeline.goOn(host))
  }

  /** Writes of the process stay on their way while it ends or stands still, or are lost some seconds before it does. */
  private snag(node: number, host: Host): void {
    const { timeline, snags } = this.world
    const engine = timeline.pick(['log', 'tables'] as const)
    const end = timeline.pick(['crash', 'crash', 'freeze', 'freeze', 'nothing'] as const)
    const isLost = timeline.chance(0.4)
    const began = (): void => {
      timeline.trace(`snag ${engine} ${node} ${end}`)
      timeline.after(isLost ? timeline.between(2_500, LOST_END_MS_MAX) : 0, () => {
        if (host.state !== 'runs' || this.isHealed) return
        if (end === 'crash') this.crash(node, host)
        if (end === 'freeze') this.freeze(host)
      })
    }
    const [prefix, passing] = [timeline.pick(SNAGGED[engine]), timeline.pick(PASSING)]
    snags[engine].add({ host, prefix, passing, writes: timeline.between(1, 4), isLost, began })
  }

  private stop(node: number, host: Host): void {
    const { timeline } = this.world
    const end = (): void => {
      if (host.state === 'runs') this.crash(node, host)
    }
    timeline.after(10_000, end) // as containers do to what has not ended by then
    timeline.after(0, () => void host.close().then(end, end), host)
  }

  private restart(node: number, host: Host): void {
    const { timeline } = this.world
    timeline.after(timeline.between(200, 12_000), () => {
      if (this.hosts[node] === host && host.state === 'dead') this.start(node)
    })
  }

  private failed(node: number, host: Host, error: unknown): void {
    this.world.timeline.trace(`start of ${node} failed: ${error}`)
    if (host.state !== 'dead') this.crash(node, host)
  }

  private trouble(troubles: { [engine in (typeof ENGINES)[number]]: Trouble }): void {
    const { timeline } = this.world
    for (const engine of timeline.chance(0.3) ? ENGINES : [timeline.pick(ENGINES)]) {
      const lost = timeline.pick([1, 0.4, 0.1, 0])
      troubles[engine] = { lost, slow: timeline.pick([0, 0.5]), slowMsMax: 2_500 }
      timeline.after(timeline.between(200, 12_000), () => {
        troubles[engine] = { ...NO_TROUBLE }
      })
    }
  }

  /** What the process has is another one's, and it does not know yet. */
  private loseLease(host: Host): void {
    const { timeline, rows } = this.world
    const held = rows.get('leases', 'leases', 'held') as { owners: { [name: string]: string } } | undefined
    const others = this.hosts.filter((one) => one !== host && one.isUp)
    if (held === undefined || others.length === 0) return
    const other = timeline.pick(others)
    for (const [name, owner] of Object.entries(held.owners))
      if (owner === host.lifeId && timeline.chance(0.5)) held.owners[name] = other.lifeId
    rows.storePlace('["consumer","leases"]', [{ table: 'leases', scope: 'leases', id: 'held', row: held }])
  }
}
