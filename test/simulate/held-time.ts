import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { idSource } from '../../src/kit/commands/ids.ts'
import { BEGUN_MS, type Timeline } from './timeline.ts'

/** Where `performance.now` begins in the next run: parts of the product keep what it said last. */
let originMs = 1_000_000
/** Ids that the product makes from bytes drawn at once. */
const DRAWN_IDS = 256
/** So many steps, and the runner of tests has its turn. */
const STEPS_AT_ONCE = 2_000

/** A timer as Node hands it out. */
class HeldTimer {
  private cancel = (): void => undefined
  private readonly start: () => () => void

  constructor(start: () => () => void) {
    this.start = start
    this.refresh()
  }

  refresh(): this {
    this.cancel()
    this.cancel = this.start()
    return this
  }

  close(): void {
    this.cancel()
  }

  unref(): this {
    return this
  }

  ref(): this {
    return this
  }

  hasRef(): boolean {
    return true
  }
}

const real = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  setImmediate: globalThis.setImmediate,
  clearImmediate: globalThis.clearImmediate,
  dateNow: Date.now,
  performanceNow: performance.now,
  nextTick: process.nextTick,
  randomFillSync: crypto.randomFillSync,
  randomBytes: crypto.randomBytes,
  randomUUID: crypto.randomUUID,
}

/**
 * Runs a timeline to where `isOver` says so. Meanwhile timers, clocks and random bytes of this process are the timeline's,
 * also for parts of the product that are handed none; afterwards they are what they were.
 */
export const runHeld = async (timeline: Timeline, begin: () => void, isOver: () => boolean): Promise<void> => {
  const held = new HeldTime(timeline)
  held.begin()
  const noteRejection = (error: unknown): void => void timeline.thrown.push(error)
  process.on('unhandledRejection', noteRejection)
  try {
    timeline.after(0, begin)
    while (!isOver() && timeline.thrown.length === 0) {
      const isLeft = timeline.step()
      await held.quiet()
      if (!isLeft) break
      if (timeline.steps % STEPS_AT_ONCE === 0) await new Promise<void>((go) => real.setImmediate(go))
    }
  } finally {
    held.end()
    await new Promise<void>((go) => real.setImmediate(go)) // rejections are told in the next turn
    process.off('unhandledRejection', noteRejection)
  }
}

class HeldTime {
  private readonly timeline: Timeline
  /** Of this turn: they run before time passes. */
  private immediates: (() => void)[] = []
  private ticks = 0

  constructor(timeline: Timeline) {
    this.timeline = timeline
  }

  begin(): void {
    const { timeline } = this
    const later = (run: (...args: unknown[]) => void, delayMs = 0, ...args: unknown[]): HeldTimer => {
      const host = timeline.current
      return new HeldTimer(() => timeline.after(Math.max(1, delayMs), () => run(...args), host))
    }
    Object.assign(globalThis, {
      setTimeout: later,
      clearTimeout: (timer: HeldTimer | undefined) => timer?.close(),
      setImmediate: (run: (...args: unknown[]) => void, ...args: unknown[]) => this.immediate(run, args),
      clearImmediate: (timer: HeldTimer | undefined) => timer?.close(),
    })
    Date.now = () => BEGUN_MS + timeline.nowMs + (timeline.current?.wallShiftMs ?? 0)
    performance.now = () => originMs + timeline.nowMs
    process.nextTick = ((run: (...args: unknown[]) => void, ...args: unknown[]) => {
      this.ticks++
      real.nextTick(() => {
        this.ticks--
        run(...args)
      })
    }) as typeof process.nextTick
    this.drawFrom(timeline)
  }

  end(): void {
    const { setTimeout, clearTimeout, setImmediate, clearImmediate } = real
    Object.assign(globalThis, { setTimeout, clearTimeout, setImmediate, clearImmediate })
    Date.now = real.dateNow
    performance.now = real.performanceNow
    process.nextTick = real.nextTick
    const { randomFillSync, randomBytes, randomUUID } = real
    Object.assign(crypto, { randomFillSync, randomBytes, randomUUID })
    syncBuiltinESMExports()
    originMs += this.timeline.nowMs + 1_000_000
  }

  /** Resolves when nothing is left to do at this moment. */
  quiet(): Promise<void> {
    return new Promise((resume) => this.drain(resume))
  }

  private drain(resume: () => void): void {
    // A tick that a microtask asks for runs when no microtask is left.
    queueMicrotask(() =>
      real.nextTick(() => {
        if (this.ticks > 0) return this.drain(resume)
        const next = this.immediates.shift()
        if (next === undefined) return resume()
        next()
        this.drain(resume)
      }),
    )
  }

  private immediate(run: (...args: unknown[]) => void, args: unknown[]): HeldTimer {
    return new HeldTimer(() => {
      let isCancelled = false
      this.immediates.push(() => (isCancelled ? undefined : run(...args)))
      return () => {
        isCancelled = true
      }
    })
  }

  /** Random bytes follow from the seed, those too that the product drew before and has not used. */
  private drawFrom(timeline: Timeline): void {
    const fill = <Bytes extends NodeJS.ArrayBufferView>(bytes: Bytes): Bytes => {
      const view = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      for (let i = 0; i < view.length; i++) view[i] = timeline.between(0, 255)
      return bytes
    }
    let isDrawn = false
    const randomFillSync = <Bytes extends NodeJS.ArrayBufferView>(bytes: Bytes): Bytes => {
      isDrawn = true
      return fill(bytes)
    }
    const randomBytes = (size: number): Buffer => fill(Buffer.alloc(size))
    const randomUUID = (): string =>
      randomBytes(16)
        .toString('hex')
        .replace(/^(.{8})(.{4}).(.{3}).(.{3})(.{12})$/, '$1-$2-4$3-a$4-$5')
    Object.assign(crypto, { randomFillSync, randomBytes, randomUUID })
    syncBuiltinESMExports()
    const ids = idSource(0)
    for (let i = 0; i < DRAWN_IDS && !isDrawn; i++) ids.next()
    for (let i = 1; isDrawn && i < DRAWN_IDS; i++) ids.next() // so that each run begins with bytes of its own
  }
}
