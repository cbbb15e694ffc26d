import type { Clock } from '../../kernel/clock.ts'
import type { LeaseRows } from './lease-rows.ts'

/** Time between two checks for changed leases. */
const GLANCE_MS = 20
/** The same during changes: a process that ends hands over one part after the other. */
const GLANCE_SOON_MS = 5
/** Time after a change during which another one is likely. */
const CHANGING_MS = 1_000

/** Makes a process look again at its time, or as soon as another one has changed what it may take or must leave. */
export class LeaseChanges {
  private readonly rows: LeaseRows
  private readonly clock: Clock
  private readonly owner: string
  private readonly look: () => void
  /** Mark of the last change known to this process. */
  private known: string | undefined
  private announced = 0
  private heardAtMs = Number.NEGATIVE_INFINITY
  /** Rises whenever the current wait becomes obsolete. */
  private waits = 0
  private cancelTimer = (): void => undefined

  constructor(rows: LeaseRows, clock: Clock, owner: string, look: () => void) {
    this.rows = rows
    this.clock = clock
    this.owner = owner
    this.look = look
  }

  /** Makes the others look soon. */
  announce(): Promise<void> {
    this.known = `${this.owner} ${++this.announced}`
    return this.rows.announce(this.known)
  }

  waitUntil(lookAtMs: number): void {
    this.stop()
    this.wait(lookAtMs)
  }

  stop(): void {
    this.waits++
    this.cancelTimer()
  }

  private wait(lookAtMs: number): void {
    const nowMs = this.clock.monotonic()
    const glanceMs = nowMs - this.heardAtMs < CHANGING_MS ? GLANCE_SOON_MS : GLANCE_MS
    const remainingMs = lookAtMs - nowMs
    this.cancelTimer = this.clock.after(Math.min(glanceMs, remainingMs), () => {
      if (remainingMs <= glanceMs) this.look()
      else void this.glance(lookAtMs)
    })
  }

  private async glance(lookAtMs: number): Promise<void> {
    const { waits } = this
    const last = await this.rows.lastChange().catch(() => this.known) // the next look reports the error
    if (this.waits !== waits) return
    if (last === this.known) return this.wait(lookAtMs)
    this.known = last
    this.heardAtMs = this.clock.monotonic()
    this.look()
  }
}
