import { geofence } from '../../src/features/geofences/geofence.ts'
import { geofenceStream } from '../../src/features/geofences/events.ts'
import { role } from '../../src/features/identity/role.ts'
import { trackerIdOf } from '../../src/features/trackers/declaration.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { handleCommand } from '../../src/kit/commands/handle-command.ts'
import { idFrom, idSource } from '../../src/kit/commands/ids.ts'
import { FENCES, ORGANIZATION, PLACES, positionOf, valuesOf } from './fleet.ts'
import type { Host, World } from './host.ts'
import { BEGUN_MS } from './timeline.ts'

const CALLER = { kind: 'ingestKey', organizationId: ORGANIZATION, keyId: 'k', autoCreate: true } as const
const ANSWER_MS_MAX = 6_000
const WAY_MS_MAX = 20
const NAMES = 4

/** What clients were told. */
export interface Told {
  /** `<tracker> <ms since the epoch>` of every point that was acknowledged. */
  points: Set<string>
  /** Ids of roles whose creation was acknowledged, with the name. */
  roles: Map<string, string>
  /** Fences whose last edit was acknowledged, with the revision. */
  edits: Map<string, number>
}

/** Whoever uses the service: trackers that send points, people who move fences and make roles. Each repeats until it is answered. */
export class Clients {
  readonly told: Told = { points: new Set(), roles: new Map(), edits: new Map() }
  /** How many are not yet done. */
  open = 0
  private readonly world: World
  private readonly hosts: () => readonly Host[]

  constructor(world: World, hosts: () => readonly Host[]) {
    this.world = world
    this.hosts = hosts
  }

  /** Trackers that send so many frames each, and edits between them. */
  begin(trackers: number, frames: number, untilMs: number): void {
    const { timeline } = this.world
    for (let i = 0; i < trackers; i++) this.startTracker(`T${i}`, frames, untilMs / frames)
    for (let i = 0; i < timeline.between(1, 4); i++) this.later(untilMs, () => this.moveFence())
    for (let i = 0; i < timeline.between(1, 6); i++) this.later(untilMs, () => this.makeRole(i))
  }

  private later(withinMs: number, run: () => void): void {
    const { timeline } = this.world
    this.open++
    timeline.after(timeline.between(0, withinMs), run)
  }

  private startTracker(externalId: string, frames: number, everyMs: number): void {
    const { timeline } = this.world
    const trackerId = trackerIdOf(ORGANIZATION, externalId)
    let place = timeline.between(0, PLACES - 1)
    const send = (left: number): void => {
      if (left === 0) return void this.open--
      const points = Array.from({ length: timeline.between(1, 3) }, (_, i) => {
        place = Math.max(0, Math.min(PLACES - 1, place + timeline.between(-2, 2)))
        const lateMs = timeline.chance(0.1) ? timeline.between(1_000, 20_000) : 0
        return { externalId, recordedAt: BEGUN_MS + Math.floor(timeline.nowMs) - lateMs + i, ...positionOf(place) }
      })
      const taken = (): void => {
        for (const { recordedAt } of points) this.told.points.add(`${trackerId} ${recordedAt}`)
        timeline.after(timeline.between(1, 2 * everyMs), () => send(left - 1))
      }
      this.ask(async ({ door }) => {
        const { rejected } = await door!.store.store(CALLER, points)
        if (rejected.length > 0) throw new Error(`points were refused: ${JSON.stringify(rejected)}`)
      }, taken)
    }
    this.open++
    timeline.after(timeline.between(0, 2_000), () => send(frames))
  }

  private moveFence(): void {
    const { timeline } = this.world
    const fence = timeline.between(0, FENCES.length - 1)
    const reach = { place: timeline.between(0, PLACES - 1), isWide: timeline.chance(0.5) }
    const seed = Buffer.from(`edit ${timeline.between(0, 1e9)}`)
    const at = BEGUN_MS + Math.floor(timeline.nowMs)
    const stream = geofenceStream(FENCES[fence])
    const command = { kind: 'change', organizationId: ORGANIZATION, values: valuesOf(fence, reach), at } as const
    this.ask(
      ({ services }) =>
        handleCommand(services!.log, stream, geofence, command, { ids: idSource(at, seed, true), metadata: {} }),
      ({ version }) => {
        this.told.edits.set(stream, Math.max(version - 1, this.told.edits.get(stream) ?? 0))
        this.open--
      },
    )
  }

  /** One of a few names, which one role at a time may have. */
  private makeRole(number: number): void {
    const { timeline } = this.world
    const name = `Role ${timeline.between(1, NAMES)}`
    const id = idFrom('simulated', 'role', number)
    const now = BEGUN_MS + Math.floor(timeline.nowMs)
    const seed = Buffer.from(`role ${id}`)
    const body = { _id: id, name, permissions: [], permissionDetails: [] }
    this.ask(
      async ({ services }) => {
        const origin = { organizationId: ORGANIZATION, now, ids: idSource(now, seed, true), metadata: {} }
        await role.writer(services!).create(origin, body)
        return true
      },
      (isMade) => {
        if (isMade) this.told.roles.set(id, name)
        this.open--
      },
      // Another role has the name.
      (error) => (error instanceof Failure && ['invalid', 'key_in_use'].includes(error.code) ? false : undefined),
    )
  }

  /** Asks a process, and another one where no answer comes or the answer is to come again. */
  private ask<Answer>(
    call: (host: Host) => Promise<Answer>,
    done: (answer: Answer) => void,
    understood: (error: unknown) => Answer | undefined = () => undefined,
  ): void {
    const { timeline } = this.world
    const again = (): void => void timeline.after(timeline.between(50, 500), () => this.ask(call, done, understood))
    const up = this.hosts().filter(({ isUp }) => isUp)
    if (up.length === 0) return again()
    const host = timeline.pick(up)
    let isOver = false
    const end = (run: () => void): void => {
      if (isOver) return
      isOver = true
      run()
    }
    timeline.after(ANSWER_MS_MAX, () => end(again))
    const answer = (run: () => void): void =>
      void timeline.after(timeline.between(0, WAY_MS_MAX), () => (timeline.chance(0.02) ? undefined : end(run)))
    const asked = async (): Promise<void> => {
      if (!host.isUp) return answer(again)
      try {
        const value = await call(host)
        answer(() => done(value))
      } catch (error) {
        const value = understood(error)
        if (value !== undefined) return answer(() => done(value))
        if (!(error instanceof Failure)) timeline.thrown.push(error)
        answer(again)
      }
    }
    timeline.after(timeline.between(0, WAY_MS_MAX), () => void asked(), host)
  }
}
