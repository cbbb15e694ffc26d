import { Clients } from './clients.ts'
import { Cluster, type Fault, FAULTS } from './faults.ts'
import { writeFleet } from './fleet.ts'
import { runHeld } from './held-time.ts'
import { Host, keyring, PARTITIONS, type World } from './host.ts'
import { violations } from './invariants.ts'
import { Receiver } from './memory-files.ts'
import { MemoryHistory } from './memory-history.ts'
import { MemoryLog } from './memory-log.ts'
import { MemoryRows } from './memory-rows.ts'
import { Snags } from './snags.ts'
import { BEGUN_MS, Timeline } from './timeline.ts'
import { Watcher } from './watchers.ts'
import { NO_TROUBLE } from './wire.ts'

const NODES = 3
/** Dashboards, and how often each does something for no reason. */
const WATCHERS_MAX = 2
const FIDGETS_MAX = 5
/** The tables of the fleet are built by then. */
const BUILD_MS = 6_000
/** Then clients and faults begin within this time. */
const BUSY_MS = 30_000
/** Or in less, and the last points of each tracker come within the time after it, while writes are held up. */
const SHORT_BUSY_MS = 10_000
const LAST_MS = 9_000
/** Then all is healed, and has so long to settle. */
const SETTLE_MS = 240_000
const LOOK_MS = 4_000

export interface Outcome {
  seed: number
  /** What is wrong; nothing for a run in which all invariants hold. */
  faults: string[]
  /** Equal for equal runs. */
  fingerprint: string
  steps: number
  /** Milliseconds that the run took by its own clock. */
  elapsedMs: number
  happened: readonly Fault[]
  points: number
  transitions: number
  /** The last of what happened. */
  lines: readonly string[]
}

export interface Options {
  /** Kinds of faults that may happen; default: all. */
  kinds?: readonly Fault[]
  /** Called with the engines before anything uses them. */
  prepare?(world: World): void
}

/** One run of three processes with clients and faults, all of which follow from the seed. */
export const simulate = async (seed: number, { kinds: all = FAULTS, prepare }: Options = {}): Promise<Outcome> => {
  const timeline = new Timeline(seed)
  // What the tables lose right after a sweep would come from the history, which answers no question here.
  const sweeps = timeline.chance(0.3) ? timeline.between(2, 8) : 0
  const kinds = sweeps > 0 ? all.filter((kind) => kind !== 'tablesLost') : all
  const watching = timeline.between(0, WATCHERS_MAX)
  const watchers: Watcher[] = []
  const world = worldOf(timeline, watching > 0)
  prepare?.(world)
  const cluster = new Cluster(world, (node, life) => new Host(world, `node-${node}`, life))
  const clients = new Clients(world, () => cluster.hosts)
  let faults = ['it has not begun']
  let isOver = false
  const look = async (): Promise<void> => {
    faults =
      clients.open > 0
        ? [`${clients.open} clients wait for an answer`]
        : await violations(world, clients.told, watchers)
    isOver = faults.length === 0 || timeline.nowMs > BUILD_MS + BUSY_MS + SETTLE_MS
    if (!isOver) timeline.after(LOOK_MS, () => void look())
  }
  const begin = (): void => {
    writeFleet(world.log)
    for (let node = 0; node < NODES; node++) cluster.start(node)
    timeline.after(BUILD_MS, () => {
      const isShort = timeline.chance(0.5)
      const busyMs = isShort ? SHORT_BUSY_MS : BUSY_MS
      clients.begin(
        timeline.between(1, 5),
        isShort ? timeline.between(1, 4) : timeline.between(3, 12),
        busyMs * 0.8,
        sweeps,
      )
      for (let i = 0; i < watching; i++)
        timeline.after(timeline.between(0, busyMs / 2), () => watchers.push(watch(world, cluster, busyMs)))
      cluster.plan(kinds, isShort ? timeline.between(0, 3) : timeline.between(1, 8), busyMs)
      const healMs = isShort ? busyMs + LAST_MS : busyMs
      if (isShort)
        timeline.after(busyMs, () => {
          clients.finish(LAST_MS)
          cluster.plan(kinds.includes('snag') ? ['snag'] : [], timeline.between(2, 4), 1_000)
        })
      timeline.after(healMs, () => cluster.heal())
      timeline.after(healMs + LOOK_MS, () => void look())
    })
  }
  await runHeld(timeline, begin, () => isOver)
  const thrown = timeline.thrown.map((error) => `thrown: ${(error as Error)?.stack ?? error}`)
  return {
    seed,
    faults: [...thrown, ...faults],
    fingerprint: timeline.fingerprint,
    steps: timeline.steps,
    elapsedMs: timeline.nowMs,
    happened: cluster.happened,
    points: clients.told.points.size,
    transitions: world.history.transitions.size,
    lines: timeline.lastLines,
  }
}

/** A dashboard that fidgets for so long. */
const watch = (world: World, cluster: Cluster, busyMs: number): Watcher => {
  const { timeline } = world
  const watcher = new Watcher(world, () => cluster.hosts)
  for (let i = timeline.between(0, FIDGETS_MAX); i > 0; i--)
    timeline.after(timeline.between(0, busyMs), () => watcher.fidget())
  return watcher
}

export const worldOf = (timeline: Timeline, isWatched = false): World => {
  const now = () => BEGUN_MS + Math.floor(timeline.nowMs)
  const { fingerprint: keyringFingerprint } = keyring
  return {
    timeline,
    log: new MemoryLog({ now, storesAgain: () => timeline.chance(0.5) }),
    rows: new MemoryRows(now),
    history: new MemoryHistory(),
    files: new Map(),
    receiver: new Receiver(timeline),
    isWatched,
    snags: { log: new Snags(timeline), tables: new Snags(timeline), history: new Snags(timeline) },
    origin: { logId: 'simulated', partitions: PARTITIONS, hash: 'fnv1a', keyringFingerprint, epoch: 0 },
    troubles: { log: { ...NO_TROUBLE }, tables: { ...NO_TROUBLE }, history: { ...NO_TROUBLE } },
  }
}
