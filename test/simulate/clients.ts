import { trackerIdOf } from '../../src/features/trackers/declaration.ts'
import { TRACKER } from '../../src/features/trackers/events.ts'
import { Failure } from '../../src/kernel/errors.ts'
import { idOfStream } from '../../src/kit/commands/declared-event.ts'
import { contest, createFence, deleteFence, deleteTracker, makeRole, moveFence, replaceRole } from './edits.ts'
import { exportTasks } from './exports.ts'
import { ORGANIZATION, PLACES, positionOf } from './fleet.ts'
import type { Host, World } from './host.ts'
import { sweepLocations } from './sweep.ts'
import type { Asking, Told } from './told.ts'
import { BEGUN_MS } from './timeline.ts'

export const CALLER = { kind: 'ingestKey', organizationId: ORGANIZATION, keyId: 'k', autoCreate: true } as const
const ANSWER_MS_MAX = 6_000
const WAY_MS_MAX = 20
/** Frames that a tracker sends in the end. */
const LAST_FRAMES_MAX = 3

/** Whoever uses the service: trackers that send points, people who move fences and make roles. Each repeats until it is answered. */
export class Clients implements Asking {
  readonly told: Told = {
    points: new Set(),
    roles: new Map(),
    edits: new Map(),
    refused: new Map(),
    exports: new Set(),
    isRoleReplaced: false,
  }
  /** How many are not yet done. */
  open = 0
  private readonly world: World
  private readonly senders: ((frames: number, everyMs: number) => void)[] = []
  private readonly hosts: () => readonly Host[]

  constructor(world: World, hosts: () => readonly Host[]) {
    this.world = world
    this.hosts = hosts
  }

  /** Trackers that send so many frames each, and edits between them. */
  begin(trackers: number, frames: number, untilMs: number, sweeps: number): void {
    const { timeline } = this.world
    const everyMs = untilMs / frames
    for (let i = 0; i < trackers; i++) {
      const send = this.tracker(`T${i}`)
      this.senders.push(send)
      this.open++
      timeline.after(timeline.between(0, Math.min(2_000, untilMs)), () => send(frames, everyMs))
    }
    for (let i = 0; i < timeline.between(1, 4); i++) this.later(untilMs, () => moveFence(this, timeline))
    for (let i = 0; i < timeline.between(0, 2); i++) this.later(untilMs, () => contest(this, timeline))
    for (let i = 0; i < timeline.between(0, 3); i++) this.later(untilMs, () => createFence(this, timeline))
    for (let i = 0; i < timeline.between(0, 2); i++) this.later(untilMs, () => deleteFence(this, timeline))
    for (let i = 0; i < timeline.between(0, 2); i++)
      this.later(untilMs, () =>
        deleteTracker(this, timeline, trackerIdOf(ORGANIZATION, `T${timeline.between(0, trackers - 1)}`)),
      )
    for (let i = 0; i < sweeps; i++) this.later(untilMs, () => sweepLocations(this))
    if (timeline.chance(0.5)) this.later(untilMs, () => replaceRole(this, timeline))
    for (let i = 0; i < timeline.between(0, 2); i++) this.later(untilMs, () => exportTasks(this, timeline))
    for (let i = 0; i < timeline.between(1, 6); i++) this.later(untilMs, () => makeRole(this, timeline, i))
  }

  /** Each tracker sends its last frames, after which nothing comes that could mend what went wrong with them. */
  finish(withinMs: number): void {
    const { timeline } = this.world
    for (const send of this.senders) {
      const frames = timeline.between(0, LAST_FRAMES_MAX)
      this.later(withinMs / 2, () => send(frames, withinMs / 4 / LAST_FRAMES_MAX))
    }
  }

  private later(withinMs: number, run: () => void): void {
    const { timeline } = this.world
    this.open++
    timeline.after(timeline.between(0, withinMs), run)
  }

  /** What sends so many frames of a tracker, one after the other. */
  private tracker(externalId: string): (frames: number, everyMs: number) => void {
    const { timeline } = this.world
    const trackerId = trackerIdOf(ORGANIZATION, externalId)
    let place = timeline.between(0, PLACES - 1)
    const send = (left: number, everyMs: number): void => {
      if (left === 0) return void this.open--
      const points = Array.from({ length: timeline.between(1, 3) }, (_, i) => {
        place = Math.max(0, Math.min(PLACES - 1, place + timeline.between(-2, 2)))
        const lateMs = timeline.chance(0.1) ? timeline.between(1_000, 20_000) : 0
        return { externalId, recordedAt: BEGUN_MS + Math.floor(timeline.nowMs) - lateMs + i, ...positionOf(place) }
      })
      const from = this.world.log.events.length
      const answered = (isTaken: boolean): void => {
        if (isTaken) for (const { recordedAt } of points) this.told.points.add(`${trackerId} ${recordedAt}`)
        timeline.after(timeline.between(1, 2 * everyMs), () => send(left - 1, everyMs))
      }
      this.ask(async ({ door }) => {
        const { rejected } = await door!.store.store(CALLER, points)
        if (rejected.length === 0) return true
        // People deleted the tracker while its points were on their way.
        const meanwhile = this.world.log.events.slice(from)
        if (meanwhile.some(({ type, stream }) => type === TRACKER.deleted && idOfStream(stream) === trackerId))
          return false
        throw new Error(`points were refused: ${JSON.stringify(rejected)}`)
      }, answered)
    }
    return send
  }

  /** Asks a process, and another one where no answer comes or the answer is to come again. */
  ask<Answer, Refusal = never>(
    call: (host: Host) => Promise<Answer>,
    done: (answer: Answer | Refusal) => void,
    understood: (error: unknown) => Refusal | undefined = () => undefined,
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
