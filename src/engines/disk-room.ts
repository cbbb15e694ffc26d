import { accessSync, constants, statfsSync } from 'node:fs'
import { constants as system } from 'node:os'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/errors.ts'
import { isBeyondRepair } from './write-errors.ts'

export interface DiskRoomOptions {
  path: string
  /** Message for a refused caller. */
  message: string
  clock: Clock
  /** Writes this many bytes to the disk and gives their space back; rejects when they do not fit. */
  tryBytes(bytes: number): Promise<void>
  /** Called for an error that room does not mend, before anything else is written. */
  broken(error: unknown): void
}

/** Bytes that stay free. A smaller commit may fit into reused pages of the engine: it proves nothing about the disk. */
const FREE_BYTES_MIN = 1024 * 1024
const TRY_EVERY_MS = 1_000

/**
 * Whether an engine may write. It may not once the disk is full or a commit has failed, until a filler at least as
 * large has gone to the disk: small commits would succeed now and then, and half of the work be refused. The disk is
 * checked before commits, because LMDB's driver writes beyond a buffer of its own when it reports a failed write.
 */
export class DiskRoom {
  private readonly options: DiskRoomOptions
  private refusal: { cause: unknown; bytes: number } | undefined
  private triedAt = Number.NEGATIVE_INFINITY
  private cancelTry: (() => void) | undefined
  private isClosed = false

  constructor(options: DiskRoomOptions) {
    this.options = options
  }

  get isShort(): boolean {
    return this.refusal !== undefined
  }

  takes(bytes: number): boolean {
    if (this.refusal === undefined) this.look(bytes)
    return !this.isShort
  }

  refused(cause: unknown, bytes: number): void {
    if (isBeyondRepair(cause) && !(isShortWrite(cause) && this.freeBytes() < bytes + FREE_BYTES_MIN))
      this.options.broken(cause)
    this.refusal = { cause, bytes: Math.max(FREE_BYTES_MIN, bytes, this.refusal?.bytes ?? 0) }
    this.tryLater()
  }

  /** Tries whether there is room again, at most once in a second. @throws Failure engine_down while there is none. */
  async check(): Promise<void> {
    if (this.refusal === undefined) this.takes(0)
    else if (this.mayTry() && this.look(this.refusal.bytes)) {
      await this.options.tryBytes(this.refusal.bytes).then(
        () => {
          this.refusal = undefined
        },
        (error: unknown) => this.refused(error, 0),
      )
    }
    if (this.isShort) throw this.failure()
  }

  failure(): Failure {
    return new Failure('engine_down', {
      message: this.options.message,
      retryAfterSeconds: 1,
      cause: this.refusal?.cause,
    })
  }

  close(): void {
    this.isClosed = true
    this.cancelTry?.()
  }

  private look(bytes: number): boolean {
    try {
      accessSync(this.options.path, constants.W_OK) // EROFS where the system made the disk read-only
    } catch (error) {
      this.refused(error, bytes)
      return false
    }
    const free = this.freeBytes()
    const isEnough = free >= bytes + FREE_BYTES_MIN
    if (!isEnough) this.refused(new Error(`The disk has ${free} bytes left.`), bytes)
    return isEnough
  }

  private freeBytes(): number {
    const { bavail, bsize } = statfsSync(this.options.path)
    return bavail * bsize
  }

  private mayTry(): boolean {
    const now = this.options.clock.monotonic()
    if (now - this.triedAt < TRY_EVERY_MS) return false
    this.triedAt = now
    return true
  }

  private tryLater(): void {
    if (this.isClosed) return
    this.cancelTry ??= this.options.clock.after(TRY_EVERY_MS, () => {
      this.cancelTry = undefined
      void this.check().catch(() => this.tryLater())
    })
  }
}

/** LMDB's error for a write that ended half-way, as the last one before a full disk does, and for a failed disk. */
const isShortWrite = (error: unknown): boolean => (error as { code?: unknown }).code === system.errno.EIO
