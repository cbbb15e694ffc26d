import { randomBytes } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { RedisConnection } from './connection.ts'
import { down } from './failures.ts'
import type { Places } from './places.ts'
import type { Registry } from './registry.ts'
import { slotOf, SLOTS } from './slots.ts'

const LOOK_MS = 1_000
/** Another process may be writing the marks of an epoch that it began. */
const MARKS_MS = 200
const MARKS_TRIES = 3
/** Parts of the slots, each with a mark, so that every master of a cluster has at least one. */
const PARTS = 64

/**
 * Notices that a server lost its data. Everything stored belongs to an epoch, whose id stands in the registry and as a
 * mark on every server. Where a mark is missing, a new epoch begins: all checkpoints and tables start over under other
 * keys, so that nothing left elsewhere is taken for the whole.
 */
export class Epoch {
  private readonly connection: RedisConnection
  private readonly places: Places
  private readonly registry: Registry
  /** Keys of which every server has at least one. */
  readonly marks: readonly string[]
  private readonly asked = new Map<string, Promise<void>>()
  private readonly listeners = new Set<() => void>()
  private readonly closed = new AbortController()
  private looking: Promise<void> | undefined
  private isSure = false
  /** Processes that serve the slots, by their own names. */
  private servers = ''

  constructor(connection: RedisConnection, places: Places, registry: Registry) {
    this.connection = connection
    this.places = places
    this.registry = registry
    this.marks = connection.isCluster ? marksOf(places) : [places.mark('0')]
  }

  /** Reads the epoch, or begins the first one, and keeps checking. @throws Failure engine_down */
  async open(): Promise<void> {
    await this.look()
    void this.lookAgainAndAgain()
  }

  close(): void {
    this.closed.abort()
  }

  /** Whether every server had its mark at the last check, and all tables may be read. */
  get isWhole(): boolean {
    return this.isSure && this.registry.isWhole
  }

  onLoss(listener: () => void): void {
    this.listeners.add(listener)
  }

  /**
   * Checks that the server of a key had not lost anything when it answered: to be called after each answer that
   * something is absent. Callers in the same turn of the event loop share the question. @throws Failure engine_down
   */
  confirm(key: string): Promise<void> {
    const mark = this.markBeside(key)
    const asking = this.asked.get(mark)
    if (asking !== undefined) return asking
    const next = Promise.resolve().then(async () => {
      this.asked.delete(mark)
      const { epoch } = this.places
      if (String(await this.connection.call(mark, ['GET', mark])) === epoch) return
      this.isSure = false
      void this.look().catch(() => undefined) // the next question reports it
      throw down(new Error('a server has lost what it had'))
    })
    this.asked.set(mark, next)
    return next
  }

  /** A mark on the same server: the slots of one part may be on two. */
  private markBeside(key: string): string {
    if (this.marks.length === 1) return this.marks[0]
    const server = this.connection.serverOf(key)
    const isThere = (mark: string): boolean => this.connection.serverOf(mark) === server
    const own = this.marks[partOf(key)]
    return isThere(own) ? own : (this.marks.find(isThere) ?? own)
  }

  /** Resolves when a check that is under way, or begins now, has ended. */
  private look(): Promise<void> {
    this.looking ??= this.lookOnce().finally(() => (this.looking = undefined))
    return this.looking
  }

  private async lookAgainAndAgain(): Promise<void> {
    while (!this.closed.signal.aborted) {
      await pause(LOOK_MS, undefined, { signal: this.closed.signal, ref: false }).catch(() => undefined)
      if (!this.closed.signal.aborted) await this.look().catch(() => undefined) // callers get the error
    }
  }

  private async lookOnce(): Promise<void> {
    const { epoch: before } = this.places
    const epoch = await this.agreed()
    await this.registry.read()
    this.places.epoch = epoch
    this.isSure = true
    const servers = await this.namesOfServers()
    const isMoved = this.servers !== '' && servers !== this.servers
    if (isMoved) await this.registry.noteScopesAgain()
    this.servers = servers
    const isTaken = this.registry.haveBeenTaken()
    if (before !== '' && (before !== epoch || isMoved || isTaken)) for (const listener of this.listeners) listener()
  }

  /** The epoch whose mark every server has. */
  private async agreed(): Promise<string> {
    for (let tries = 1; ; tries++) {
      const epoch = await this.registry.epoch()
      const marks = await Promise.all(this.marks.map((mark) => this.connection.call(mark, ['GET', mark])))
      if (epoch !== '' && marks.every((mark) => String(mark) === epoch)) return epoch
      this.isSure = false
      if (epoch !== '' && tries % MARKS_TRIES !== 0) await pause(MARKS_MS)
      else await this.begin(epoch)
    }
  }

  /** Begins an epoch after that one, unless another process has. */
  private async begin(before: string): Promise<void> {
    const epoch = randomBytes(6).toString('hex')
    const ended = await this.registry.begin(before, epoch)
    if (ended === undefined) return
    await Promise.all(this.marks.map((mark) => this.connection.call(mark, ['SET', mark, epoch])))
    void this.registry.dropEnded(new Set([before, ...ended])).catch(() => undefined) // it only costs memory
  }

  private async namesOfServers(): Promise<string> {
    const infos = await this.connection.everywhere(['INFO', 'server'])
    return infos
      .map((info) => /run_id:(\w+)/.exec(String(info))?.[1] ?? '')
      .sort()
      .join()
  }
}

const partOf = (key: string): number => Math.floor((slotOf(key) * PARTS) / SLOTS)

/** A key in each part of the slots. */
const marksOf = (places: Places): string[] => {
  const marks: string[] = []
  for (let i = 0, found = 0; found < PARTS; i++) {
    const mark = places.mark(String(i))
    if (marks[partOf(mark)] !== undefined) continue
    marks[partOf(mark)] = mark
    found++
  }
  return marks
}
