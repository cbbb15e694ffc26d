import { existsSync, readFileSync } from 'node:fs'
import type { Test } from 'tap'

/**
 * What a service may take beside what it has when a fault begins: its queues (64 MB an organization, 10,000 commands), and
 * what V8 has yet to collect. Far below what a queue without a bound would take.
 */
const GROWTH_MB_MAX = 450

/** Follows what a process of this machine holds in memory of its own, without the files that it has mapped (Linux). */
export class MemoryWatch {
  private readonly begunMb: number
  private mostMb: number
  private readonly path: string
  private readonly timer: NodeJS.Timeout

  constructor(pid: number | undefined) {
    this.path = `/proc/${pid}/status`
    this.begunMb = this.mostMb = this.nowMb()
    this.timer = setInterval(() => {
      if (existsSync(this.path)) this.mostMb = Math.max(this.mostMb, this.nowMb())
    }, 50)
    this.timer.unref()
  }

  private get growthMb(): number {
    return this.mostMb - this.begunMb
  }

  /** Holds the growth to its bound. */
  end(t: Test, growthMbMax = GROWTH_MB_MAX): void {
    clearInterval(this.timer)
    if (process.platform !== 'linux') return t.comment('memory is not looked at: there is no /proc')
    const what = `memory of ${this.begunMb.toFixed(0)} MB grew by ${this.growthMb.toFixed(0)} MB at most`
    t.ok(this.growthMb < growthMbMax, what)
  }

  private nowMb(): number {
    if (process.platform !== 'linux') return 0
    const [, kilobytes] = /RssAnon:\s+(\d+)/.exec(readFileSync(this.path, 'utf8')) ?? []
    return Number(kilobytes) / 1024
  }
}
