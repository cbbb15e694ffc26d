import type { Clock } from '../kernel/clock.ts'
import { pause } from '../kit/consumers/retry.ts'
import { IngestClient } from './ingest-client.ts'
import { readTrace, type Fix } from './trace-file.ts'

const FRAME_POINTS_MAX = 500

export interface ReplayOptions {
  url: string
  credential: string
  path: string
  /** 1 is real time, 10 ten times as fast; 0 as fast as the server takes it. */
  speed: number
  clock: Clock
  signal: AbortSignal
}

/**
 * Sends a trace moved in time so that it happens now: its first fix is recorded at the moment the replay begins. With a
 * speed other than 1 the fixes keep their distances and the last one ends up at now.
 */
export const replayTrace = async (options: ReplayOptions): Promise<{ points: number; rejected: number }> => {
  const { clock, speed, signal } = options
  const shift =
    speed === 1 ? clock.now() - (await firstTime(options.path)) : clock.now() - (await lastTime(options.path))
  const client = await IngestClient.connect(options.url, options.credential)
  const begun = clock.monotonic()
  let points = 0
  let firstAt: number | undefined
  let frame: Fix[] = []
  const flush = async (): Promise<void> => {
    if (frame.length === 0) return
    await client.send(frame.map((fix) => ({ ...fix, recordedAt: fix.recordedAt + shift })))
    points += frame.length
    frame = []
  }
  for await (const fix of readTrace(options.path)) {
    if (signal.aborted) break
    firstAt ??= fix.recordedAt
    const waitMs = speed === 0 ? 0 : begun + (fix.recordedAt - firstAt) / speed - clock.monotonic()
    if (waitMs > 0) {
      await flush()
      await pause(clock, waitMs, signal)
    }
    frame.push(fix)
    if (frame.length >= FRAME_POINTS_MAX) await flush()
  }
  await flush()
  await client.drained()
  client.close()
  return { points, rejected: client.rejected.length }
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
