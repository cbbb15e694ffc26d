import type { Clock } from '../kernel/clock.ts'
import { pause } from '../kit/consumers/retry.ts'
import type { ApiClient } from './api-client.ts'
import { IngestClient } from './ingest-client.ts'
import { readTrace, readTraceLines, type Fix } from './trace-file.ts'

const FRAME_POINTS_MAX = 500

export interface ReplayOptions {
  client: ApiClient
  credential: string
  path: string
  /** 1 is real time, 10 ten times as fast; 0 as fast as the server accepts. */
  speed: number
  clock: Clock
  signal: AbortSignal
  /** Called with each row that the server refused: the line of the file, from 1, and the reason. */
  onRejected?: (line: number, reason: string) => void
}

/**
 * Sends a trace moved to the present: its first fix is recorded at the moment the replay begins. With a speed other
 * than 1 the fixes keep their intervals and the last one is recorded now.
 * Returns the numbers of durable and of refused points.
 */
export const replayTrace = async (options: ReplayOptions): Promise<{ acknowledged: number; rejected: number }> => {
  const { clock, speed, signal } = options
  const shift =
    speed === 1 ? clock.now() - (await firstTime(options.path)) : clock.now() - (await lastTime(options.path))
  const ingest = await IngestClient.connect(options.client, options.credential)
  const frames = new Frames(ingest, options.onRejected ?? (() => undefined))
  const begun = clock.monotonic()
  let firstAt: number | undefined
  for await (const { fix, line } of readTraceLines(options.path)) {
    if (signal.aborted) break
    firstAt ??= fix.recordedAt
    const waitMs = speed === 0 ? 0 : begun + (fix.recordedAt - firstAt) / speed - clock.monotonic()
    if (waitMs > 0) {
      await frames.flush()
      await pause(clock, waitMs, signal)
    }
    await frames.add({ ...fix, recordedAt: fix.recordedAt + shift }, line)
  }
  await frames.flush()
  await ingest.drained()
  frames.report()
  ingest.close()
  return { acknowledged: frames.sent - frames.rejected, rejected: frames.rejected }
}

/** Collects fixes into frames and remembers their lines in the file until the frame is acknowledged. */
class Frames {
  sent = 0
  rejected = 0
  private fixes: Fix[] = []
  private lines: number[] = []
  private readonly linesBySeq = new Map<number, number[]>()
  private readonly ingest: IngestClient
  private readonly onRejected: (line: number, reason: string) => void

  constructor(ingest: IngestClient, onRejected: (line: number, reason: string) => void) {
    this.ingest = ingest
    this.onRejected = onRejected
  }

  async add(fix: Fix, line: number): Promise<void> {
    this.fixes.push(fix)
    this.lines.push(line)
    if (this.fixes.length >= FRAME_POINTS_MAX) await this.flush()
  }

  async flush(): Promise<void> {
    if (this.fixes.length === 0) return
    const { fixes, lines } = this
    this.fixes = []
    this.lines = []
    this.linesBySeq.set(await this.ingest.send(fixes), lines)
    this.sent += fixes.length
    this.report()
  }

  /** Reports refusals so far, and drops frames that are done. */
  report(): void {
    for (const { seq, index, code, message } of this.ingest.rejected.splice(0)) {
      this.rejected++
      this.onRejected(this.linesBySeq.get(seq)?.[index] ?? 0, `${message} (${code})`)
    }
    for (const seq of this.linesBySeq.keys()) if (seq <= this.ingest.acknowledgedSeq) this.linesBySeq.delete(seq)
  }
}

const firstTime = async (path: string): Promise<number> => {
  for await (const fix of readTrace(path)) return fix.recordedAt
  return 0
}

const lastTime = async (path: string): Promise<number> => {
  let last = 0
  for await (const fix of readTrace(path)) last = Math.max(last, fix.recordedAt)
  return last
}
