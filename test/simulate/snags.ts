import type { Stoppable, Timeline } from './timeline.ts'

/** What becomes of the next writes of one process that concern something. */
export interface Snag {
  host: Stoppable
  /** How what they concern begins. */
  prefix: string
  /** So many go through before: what is one commit breaks off in its middle. */
  passing: number
  /** Of so many writes. */
  writes: number
  /** They never arrive; otherwise they do when another process asks about the same, or after some time. */
  isLost: boolean
  /** Called with the first of them. */
  began(): void
}

interface HeldWrite {
  host: Stoppable
  name: string
  release(): void
}

const HELD_MS_MAX = 12_000
/** How long it still takes once another process has asked: it lands in the middle of what that process does. */
const RELEASE_MS = [0, 3, 10, 30, 100]

/** The snags of one engine: a write stays on its way while whoever sent it is dead or stands, until its successor is at work. */
export class Snags {
  private readonly timeline: Timeline
  private snags: Snag[] = []
  private readonly held = new Set<HeldWrite>()

  constructor(timeline: Timeline) {
    this.timeline = timeline
  }

  add(snag: Snag): void {
    this.snags.push(snag)
  }

  /** Nothing more is held or lost. */
  end(): void {
    this.snags = []
    for (const { release } of this.held) release()
  }

  /** What becomes of a write: one that is held calls `arrive` in the end. */
  catches(host: Stoppable, name: string, arrive: () => void): 'lost' | 'held' | undefined {
    const snag = this.snags.find((one) => one.host === host && name.startsWith(one.prefix))
    if (snag === undefined || snag.passing-- > 0) return undefined
    const { timeline } = this
    snag.began()
    snag.began = () => undefined
    if (--snag.writes === 0) this.snags = this.snags.filter((one) => one !== snag)
    if (snag.isLost) return 'lost'
    const release = (): void => {
      if (this.held.delete(held)) arrive()
    }
    const held: HeldWrite = { host, name, release }
    this.held.add(held)
    timeline.after(timeline.between(200, HELD_MS_MAX), release)
    return 'held'
  }

  /** Somebody asks about something. */
  asked(host: Stoppable, name: string): void {
    for (const held of this.held)
      if (held.host !== host && held.name === name) this.timeline.after(this.timeline.pick(RELEASE_MS), held.release)
  }
}
