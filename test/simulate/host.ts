import { createHash, createHmac } from 'node:crypto'
import { readConfig } from '../../src/config.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import type { Logger } from '../../src/kernel/logger.ts'
import { LeaseOwners } from '../../src/kit/consumers/leases.ts'
import type { LogOrigin } from '../../src/kit/consumers/log-origin.ts'
import { Checkpoints } from '../../src/kit/consumers/settle.ts'
import type { Channel } from '../../src/kit/http/channel.ts'
import type { Keyring } from '../../src/kit/keys/keyring.ts'
import { ProcessRunner } from '../../src/processes/runner.ts'
import { openDispatcher } from '../../src/roles/dispatcher.ts'
import { openJobs } from '../../src/roles/jobs.ts'
import { openLive } from '../../src/roles/live.ts'
import { openMatcher } from '../../src/roles/matcher.ts'
import { openPointDoor, type PointDoor } from '../../src/roles/point-door.ts'
import { openProjector } from '../../src/roles/projector.ts'
import { openRoles } from '../../src/roles/open-roles.ts'
import { quotasOf } from '../../src/roles/quotas.ts'
import { type Role, type RoleServices, roleServices } from '../../src/roles/role.ts'
import { LATEST_POSITIONS, LATEST_TRACKERS } from '../../src/features/locations/views.ts'
import { tablesOf } from '../../src/kit/consumers/projection.ts'
import { closeAll } from '../../src/operations/close-all.ts'
import { openMemoryFiles, noMailer, type Receiver } from './memory-files.ts'
import { type MemoryHistory, openMemoryHistory } from './memory-history.ts'
import { type MemoryLog, openMemoryLog } from './memory-log.ts'
import type { MemoryRows } from './memory-rows.ts'
import { type MemoryTables, openMemoryTables } from './memory-tables.ts'
import { BEGUN_MS, type Stoppable, type Timeline } from './timeline.ts'
import type { Snags } from './snags.ts'
import { FaultyWire, NO_TROUBLE, type Trouble } from './wire.ts'

export const PARTITIONS = 2

/** What all processes of a run share. */
export interface World {
  timeline: Timeline
  log: MemoryLog
  rows: MemoryRows
  history: MemoryHistory
  files: Map<string, Uint8Array>
  receiver: Receiver
  /** Dashboards look at it: without, processes open no live view. */
  isWatched: boolean
  origin: LogOrigin
  /** Troubles of the engines, for every process. */
  troubles: { log: Trouble; tables: Trouble; history: Trouble }
  /** What becomes of single writes. */
  snags: { log: Snags; tables: Snags; history: Snags }
}

const FLAGS = ['--data', '/simulated', '--port', '0', '--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s,10s,20s,40s']
const config = readConfig([...FLAGS, '--tables', 'redis://simulated', '--log', 'esdb://simulated:2113'], {})

/** One process of the service: what it was until it was killed, and what was started in its place. */
export class Host implements Stoppable {
  readonly name: string
  state: Stoppable['state'] = 'runs'
  wallShiftMs = 0
  readonly held: Stoppable['held'] = []
  /** The way of this process to engines. */
  readonly troubles = { log: { ...NO_TROUBLE }, tables: { ...NO_TROUBLE }, history: { ...NO_TROUBLE } }
  door: PointDoor | undefined
  services: RoleServices | undefined
  tables: MemoryTables | undefined
  live: Channel | undefined
  /** Connections of dashboards. */
  readonly lines = new Set<{ broken(): void }>()
  private readonly world: World
  private readonly roles: Role[] = []
  readonly lifeId: string
  private owners: LeaseOwners | undefined

  constructor(world: World, node: string, life: number) {
    this.world = world
    this.name = node
    this.lifeId = `${node}-${life}`
  }

  get isUp(): boolean {
    return this.state === 'runs' && this.door !== undefined
  }

  /** Opens it as `openService` does, but for the port. */
  async open(): Promise<void> {
    const { world } = this
    const wire = (engine: keyof World['troubles']) =>
      new FaultyWire(world.timeline, this, () => [world.troubles[engine], this.troubles[engine]], world.snags[engine])
    const clock = this.clock()
    const logger = this.logger()
    const log = openMemoryLog(world.log, wire('log'))
    this.tables = openMemoryTables(world.rows, wire('tables'))
    const checkpoints = new Checkpoints(this.tables, clock)
    const { tables } = checkpoints
    const processes = new ProcessRunner({ log, tables, clock, logger })
    const history = openMemoryHistory(world.history, wire('history'))
    const files = openMemoryFiles(world.files, world.timeline, this)
    const quotas = quotasOf({ tables, clock }, config.limits)
    const { origin } = world
    const base = { log, tables, checkpoints, history, files, clock, keyring, logger, processes, quotas }
    const life = { node: this.name, id: this.lifeId }
    this.owners = await LeaseOwners.open({ tables, clock, logger, life })
    const parts = { config, origin, owners: this.owners, life, caller: world.receiver.callerOf(this), mailer: noMailer }
    const services = roleServices(
      { ...parts, services: { ...base, partitions: PARTITIONS }, travelTimes: undefined },
      'http://s',
    )
    services.metrics.close()
    const declared = [LATEST_POSITIONS, LATEST_TRACKERS, ...services.projections.flatMap(tablesOf)]
    await Promise.all(declared.map((table) => tables.declare(table)))
    const others = [openMatcher, openDispatcher, openJobs, ...(world.isWatched ? [openLive] : [])]
    await openRoles(services, openProjector, others, this.roles)
    this.services = services
    this.live = this.roles.flatMap(({ channels = [] }) => channels)[0]
    this.door = await openPointDoor(services)
  }

  /** Ends it as SIGTERM does. */
  async close(): Promise<void> {
    const { door, services } = this
    this.door = undefined
    this.owners?.leaveAll()
    this.endLines()
    await door?.drain()
    await door?.close()
    await closeAll([...this.roles, ...Object.values(services?.feeds ?? {})], this.logger())
    await this.owners?.close()
  }

  /** Ends it as SIGKILL does: nothing of it runs any more. */
  kill(): void {
    this.state = 'dead'
    this.held.length = 0
    this.door = undefined
    this.endLines()
  }

  private endLines(): void {
    this.live = undefined
    for (const line of [...this.lines]) line.broken()
  }

  private clock(): Clock {
    const { timeline } = this.world
    return {
      now: () => BEGUN_MS + Math.floor(timeline.nowMs) + this.wallShiftMs,
      monotonic: () => timeline.nowMs,
      after: (delayMs, run) => timeline.after(delayMs, run, this),
    }
  }

  private logger(): Logger {
    const note = (level: string) => (msg: string, fields?: object) => {
      this.world.timeline.trace(`${this.lifeId} ${level}: ${msg} ${JSON.stringify(fields ?? {})}`)
    }
    return { debug: () => undefined, info: () => undefined, warn: note('warn'), error: note('error') }
  }
}

/** A keyring that is the same in every run: nothing but what was made from it is compared. */
const KEYS = 'keys of the simulator'

export const keyring: Keyring = {
  fingerprint: createHash('sha256').update(KEYS).digest('hex').slice(0, 32),
  hmac: (purpose, text) => createHmac('sha256', `${KEYS} ${purpose}`).update(text).digest(),
  encrypt: (purpose, text) => `${purpose}.${Buffer.from(text).toString('base64url')}`,
  decrypt: (purpose, sealed) => Buffer.from(sealed.slice(purpose.length + 1), 'base64url').toString(),
  tokenKeys: [],
}
