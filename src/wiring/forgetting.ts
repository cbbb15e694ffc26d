import type { LatestPositions } from '../../projections/latest-position.ts'
import type { Clock } from '../kernel/clock.ts'
import type { WaitForgotten } from '../features/trackers/tracker-writer.ts'
import type { DeletionAnnouncer } from '../reactors/announce/deletions.ts'

const LOOK_MS = 10

/** Waits for what follows a tracker's deletion: its writer is there before those who follow the log are. */
export class Forgetting {
  private readonly clock: Clock
  private parts: { deletions: DeletionAnnouncer; latest: LatestPositions } | undefined

  constructor(clock: Clock) {
    this.clock = clock
  }

  connect(deletions: DeletionAnnouncer, latest: LatestPositions): void {
    this.parts = { deletions, latest }
  }

  readonly wait: WaitForgotten = async (trackerId, position, timeoutMs) => {
    if (this.parts === undefined) return false
    const { deletions, latest } = this.parts
    const until = this.clock.monotonic() + timeoutMs
    if (!(await deletions.waitAnnounced(position, timeoutMs))) return false
    while (latest.of(trackerId) !== undefined) {
      if (this.clock.monotonic() >= until) return false
      await new Promise<void>((resume) => this.clock.after(LOOK_MS, resume))
    }
    // A commit that fails is tried again with the next one.
    const committed = latest.flushOf(trackerId).then(
      () => true,
      () => false,
    )
    return this.within(until - this.clock.monotonic(), committed)
  }

  private within(leftMs: number, answer: Promise<boolean>): Promise<boolean> {
    return new Promise((resolve) => {
      const cancel = this.clock.after(Math.max(0, leftMs), () => resolve(false))
      void answer.then((isDone) => {
        cancel()
        resolve(isDone)
      })
    })
  }
}
