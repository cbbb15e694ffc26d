import type { UserCaller } from '../../src/kernel/caller.ts'
import type { ChannelConnection } from '../../src/kit/http/channel.ts'
import type { Host, World } from './host.ts'

const WAY_MS_MAX = 20
/** More than a socket takes before the service waits. */
const FULL_BYTES = 1_000_000
/** Longest time until it is noticed that the other side has died. */
const NOTICED_MS_MAX = 1_000

interface Ends {
  taken(text: string): void
  /** @param code that it was closed with; undefined where the process ended */
  ended(code?: number): void
}

/** A WebSocket between a dashboard and a process. What is on its way arrives in order, or is lost when it breaks. */
export class Line {
  private readonly world: World
  private readonly host: Host
  private readonly ends: Ends
  private connection: ChannelConnection | undefined
  private isOpen = true
  private isSlow = false
  private inMs = 0
  private outMs = 0

  constructor(world: World, host: Host, caller: UserCaller, ends: Ends) {
    this.world = world
    this.host = host
    this.ends = ends
    const socket = {
      address: '127.0.0.1',
      send: (text: string) => {
        this.arrive(text)
        return this.bytes()
      },
      bufferedBytes: () => this.bytes(),
      close: (code: number) => this.broken(code),
    }
    host.lines.add(this)
    this.within(() => {
      if (host.live === undefined) this.broken()
      else this.connection = host.live.open(socket, caller)
    })
  }

  get isUp(): boolean {
    return this.isOpen && this.host.isUp
  }

  send(text: string): void {
    this.within(() => this.connection?.message(new Uint8Array(Buffer.from(text)).buffer, false))
  }

  /** The dashboard goes away. */
  end(): void {
    this.isOpen = false
    this.close()
  }

  /** The process ends it, or is gone. */
  broken(code?: number): void {
    const { timeline } = this.world
    if (!this.isOpen) return
    if (timeline.chance(0.5)) this.isOpen = false
    timeline.after(timeline.between(0, NOTICED_MS_MAX), () => {
      this.isOpen = false
      this.ends.ended(code)
    })
    this.close()
  }

  readSlowly(forMs: number): void {
    this.isSlow = true
    this.world.timeline.after(forMs, () => {
      this.isSlow = false
      this.within(() => this.connection?.drain())
    })
  }

  private bytes(): number {
    return this.isSlow ? FULL_BYTES : 0
  }

  private close(): void {
    this.host.lines.delete(this)
    this.within(() => {
      const { connection } = this
      this.connection = undefined
      connection?.closed()
    })
  }

  /** Something that arrives at the process, behind all that was sent before. */
  private within(run: () => void): void {
    const { timeline } = this.world
    this.inMs = Math.max(this.inMs, timeline.nowMs + timeline.between(0, WAY_MS_MAX))
    timeline.after(this.inMs - timeline.nowMs, run, this.host)
  }

  private arrive(text: string): void {
    const { timeline } = this.world
    this.outMs = Math.max(this.outMs, timeline.nowMs + timeline.between(0, WAY_MS_MAX))
    timeline.after(this.outMs - timeline.nowMs, () => {
      if (this.isOpen) this.ends.taken(text)
    })
  }
}
