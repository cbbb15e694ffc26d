import type { UserCaller } from '../../src/kernel/caller.ts'
import { PERMISSIONS } from '../../src/features/identity/users/predefined-roles.ts'
import { CLOSE } from '../../src/kit/http/channel.ts'
import { EDITOR, IDENTITY, ORGANIZATION, ROLE } from './fleet.ts'
import type { Host, World } from './host.ts'
import { Line } from './line.ts'
import type { ToldEvent } from './told.ts'

/** How long a dashboard waits for an answer, and at a process that stands still, before it goes to another. */
const PATIENCE_MS = 12_000
const STANDS_MS = 4_000
const AGAIN_MS_MAX = 1_500

/** One who sees all of the organization. */
const caller: UserCaller = {
  ...{ kind: 'user', organizationId: ORGANIZATION, userId: EDITOR, identityId: IDENTITY, jti: 'j', roleId: ROLE },
  ...{ email: 'Editor@example.com', expiresAt: Number.MAX_SAFE_INTEGER, roleKey: 'owner', hubIds: 'all', teamIds: [] },
  ...{ permissions: new Set(PERMISSIONS), permissionDetails: [] },
}

interface Message {
  type: 'snapshot' | 'positions' | 'event' | 'gap' | 'error'
  id: string
  cursor?: string
  positions?: { trackerId: string; recordedAt: string }[]
  gone?: string[]
  more?: boolean
  channel?: string
  event?: ToldEvent['event']
  code?: string
}

/** A dashboard. It shows what it is told, and comes back with its cursor, to any process, whenever its connection ends. */
export class Watcher {
  /** When the position that it shows of each tracker was recorded. */
  readonly positions = new Map<string, string>()
  readonly events: ToldEvent[] = []
  /** What it was told and should never be. */
  readonly faults: string[] = []
  /** Events of the log when its first snapshot was complete: it hears of all later ones. */
  sees: number | undefined
  private readonly world: World
  private readonly hosts: () => readonly Host[]
  private readonly intervalMs: number
  private line: Line | undefined
  private cursor: string | undefined
  private isWithin = false
  private isAnswered = false
  private subscriptions = 0

  constructor(world: World, hosts: () => readonly Host[]) {
    this.world = world
    this.hosts = hosts
    this.intervalMs = world.timeline.pick([20, 100, 1_000])
    this.comeBack()
  }

  /** Reads slowly, asks anew, or goes elsewhere, for no reason. */
  fidget(): void {
    const { timeline } = this.world
    const { line } = this
    if (line === undefined) return
    const what = timeline.between(0, 2)
    if (what === 0) this.leave()
    else if (what === 1) this.subscribe()
    else line.readSlowly(timeline.between(10, 3_000))
  }

  private leave(): void {
    this.line?.end()
    this.line = undefined
    this.comeBack()
  }

  private comeBack(): void {
    const { timeline } = this.world
    timeline.after(timeline.between(1, AGAIN_MS_MAX), () => {
      if (this.line !== undefined) return
      const up = this.hosts().filter(({ isUp }) => isUp)
      if (up.length === 0) return this.comeBack()
      const line = new Line(this.world, timeline.pick(up), caller, {
        taken: (text) => this.take(JSON.parse(text) as Message),
        ended: (code) => {
          if (code !== undefined && code !== CLOSE.restart) this.faults.push(`a dashboard was closed with ${code}`)
          if (this.line === line) this.leave()
        },
      })
      this.line = line
      this.subscribe()
    })
  }

  private subscribe(): void {
    const { line, cursor, intervalMs: interval } = this
    const channels = ['positions', 'geofence', 'trip', 'task', 'notification', 'job']
    // What an earlier subscription told after its cursor is told again.
    line?.send(JSON.stringify({ type: 'unsubscribe', id: `s${this.subscriptions++}` }))
    this.isWithin = false
    this.isAnswered = false
    line?.send(JSON.stringify({ type: 'subscribe', id: `s${this.subscriptions}`, channels, interval, since: cursor }))
    this.watch(line, PATIENCE_MS)
  }

  private watch(line: Line | undefined, patienceMs: number): void {
    this.world.timeline.after(STANDS_MS, () => {
      if (line === undefined || this.line !== line) return
      const left = this.isAnswered ? PATIENCE_MS : patienceMs - STANDS_MS
      if (!line.isUp || left <= 0) this.leave()
      else this.watch(line, left)
    })
  }

  private take(message: Message): void {
    const { type, id, positions = [], gone = [], cursor, code } = message
    if (id !== `s${this.subscriptions}`) return
    if (type === 'gap') this.faults.push('a dashboard was told of a gap')
    if (type === 'error' && code !== 'engine_down') this.faults.push(`a dashboard was told ${code}`)
    if (type === 'error') return this.leave()
    if (type === 'event') this.events.push(message as ToldEvent)
    if (type === 'snapshot') this.begin(message.more === true)
    for (const { trackerId, recordedAt } of positions) this.positions.set(trackerId, recordedAt)
    for (const trackerId of gone) this.positions.delete(trackerId)
    this.cursor = cursor ?? this.cursor
  }

  private begin(isMore: boolean): void {
    if (!this.isWithin) this.positions.clear()
    this.isWithin = isMore
    this.isAnswered = !isMore
    if (!isMore) this.sees ??= this.world.log.events.length
  }
}
