import type { TableStore } from '../../engines/table-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Logger } from '../../kernel/logger.ts'
import { NO_ORGANIZATION, type RowChange, type TableDeclaration } from '../../kernel/table.ts'
import type { Keyring } from '../keys/keyring.ts'
import { isEarlier, type Life } from '../operations/life.ts'
import { KEPT_MS, markOf, readMark, RECALLED, type RecalledRow } from './request-mark.ts'

const IDEMPOTENCY_TABLE: TableDeclaration = { name: 'idempotency', version: 1, lives: 'row' }

/** Time for which a token that its own call revoked may read that call's answer. */
const REVOKED_TOKEN_MS = 10 * 60_000
/** Silence after which a run of another node counts as crashed: the same request may run again. */
const CRASHED_AFTER_MS = 60_000
const SIGN_OF_LIFE_MS = 20_000
const ANSWER_BYTES_MAX = 512 * 1024
const PURPOSE = 'idempotency'

/** Identity of a request: the same key from another caller or route is another request. */
export interface IdempotentRequest {
  /** The key as the client sent it. */
  key: string
  /** Such as `user:<organization>:<user>` or `address:<address>`. */
  caller: string
  operationId: string
  /** Content of the request: parameters of path and query, and the body. */
  fingerprint: string
}

/** An answer to keep and to send again. */
export interface KeptAnswer {
  status: number
  headers: { [name: string]: string }
  body: string
  /** The body is the base64 of its bytes. */
  isBase64?: true
}

/** The request has to run: ids and time are those of its first run. */
export interface Run {
  seed: Buffer
  now: number
  /** Whether it ran before, and may have done something. */
  isRepeat: boolean
  /** Goes into the metadata of every event of the run, so that the log recognizes the request. */
  mark: string
  /** Keeps the answer. With `revokedToken` that token may read it for ten minutes too. */
  done(answer: KeptAnswer, revokedToken?: string): Promise<void>
  /** Keeps only ids and time: a repeat runs again. For temporary failures, and for answers that cannot be kept. */
  open(): Promise<void>
}

interface KeptRow {
  [field: string]: unknown
  fingerprint: string
  seed: string
  startedAt: number
  /** Process of the run. */
  life: Life
  /** Last sign of life of the run. */
  aliveAt: number
  state: 'running' | 'open' | 'done'
  /** Number of the run; the caller that makes the row of the next attempt may run it. */
  attempt: number
  /** The sealed answer of a `done` one. */
  answer?: string
}

/** Holder of an attempt after the first. */
interface ClaimRow {
  [field: string]: unknown
  life: Life
}

interface TokenRow {
  [field: string]: unknown
  fingerprint: string
  answer: string
}

export interface IdempotencyOptions {
  tables: TableStore
  keyring: Keyring
  /** This process: requests begun by an earlier one of the same node run again at once. */
  life: Life
  clock: Clock
  logger: Logger
}

/** Remembers the answers to requests with an Idempotency-Key, on all nodes, encrypted. */
export class Idempotency {
  private readonly options: IdempotencyOptions

  constructor(options: IdempotencyOptions) {
    this.options = options
  }

  /** Call it once before use. */
  async declare(): Promise<void> {
    for (const table of [IDEMPOTENCY_TABLE, { ...RECALLED, isProjected: true }])
      await this.options.tables.declare(table)
  }

  /**
   * Answers the first request's answer, or the right to run.
   * @throws Failure `in_progress` while another run is under way, `key_reused` for another body, `engine_down`.
   */
  async begin(request: IdempotentRequest): Promise<KeptAnswer | Run> {
    const { tables, clock, life } = this.options
    const id = this.idOf(`${request.caller}|${request.operationId}|${request.key}`)
    const fingerprint = this.idOf(request.fingerprint)
    const now = clock.now()
    const fresh: KeptRow = {
      fingerprint,
      seed: this.seedOf(id, now),
      startedAt: now,
      life,
      aliveAt: now,
      state: 'running',
      attempt: 1,
    }
    const kept = await tables.putIfAbsent({
      table: IDEMPOTENCY_TABLE.name,
      scope: NO_ORGANIZATION,
      id,
      row: fresh,
      expiresAt: now + KEPT_MS,
    })
    if (kept === undefined) return this.runFirst(id, fresh, request)
    if (kept.fingerprint !== fingerprint) throw new Failure('key_reused')
    if (kept.state === 'done') return this.open(kept.answer as string)
    if (kept.state === 'running' && !this.hasCrashed(kept)) throw underWay()
    return this.runAgain(id, kept, request)
  }

  /** The answer of the call that revoked this token, for the same key and body; undefined for everything else. */
  async answerForRevoked(token: string, request: Omit<IdempotentRequest, 'caller'>): Promise<KeptAnswer | undefined> {
    const row = await this.options.tables.get<TokenRow>(
      IDEMPOTENCY_TABLE.name,
      NO_ORGANIZATION,
      this.tokenId(token, request.operationId, request.key),
    )
    if (row === undefined || row.fingerprint !== this.idOf(request.fingerprint)) return undefined
    return this.open(row.answer)
  }

  /** Whether the request was begun lately and has no answer: its caller's token may have been revoked since. */
  async isBegun(request: IdempotentRequest): Promise<boolean> {
    const id = this.idOf(`${request.caller}|${request.operationId}|${request.key}`)
    const row = await this.options.tables.get<KeptRow>(IDEMPOTENCY_TABLE.name, NO_ORGANIZATION, id)
    if (row === undefined || row.state === 'done' || row.fingerprint !== this.idOf(request.fingerprint)) return false
    return this.options.clock.now() - row.startedAt < REVOKED_TOKEN_MS
  }

  private async runFirst(id: string, fresh: KeptRow, request: IdempotentRequest): Promise<Run> {
    try {
      const row = await this.asFirst(id, fresh)
      if (row !== fresh) await this.commit([this.change(id, row)])
      return this.run(id, row, request, row !== fresh)
    } catch (error) {
      await this.commit([{ ...this.change(id, fresh), row: null }]).catch(() => undefined)
      throw error
    }
  }

  /**
   * The row with the time and the seed of the first run, if the log has one: the tables may have forgotten it.
   * @throws Failure `key_reused`, `engine_down` while the recalled requests are being read.
   */
  private async asFirst(id: string, row: KeptRow): Promise<KeptRow> {
    const { tables } = this.options
    const own = readMark(markOf(id, row))
    const first = await tables.get<RecalledRow>(RECALLED.name, own.scope, own.id)
    if (first === undefined) return row
    if (first.fingerprint !== own.row.fingerprint) throw new Failure('key_reused')
    return { ...row, seed: this.seedOf(id, first.startedAt), startedAt: first.startedAt }
  }

  /** Several nodes may see an abandoned run; the one that makes the row of the next attempt runs it. */
  private async runAgain(id: string, known: KeptRow, request: IdempotentRequest): Promise<Run> {
    const { tables, clock, life } = this.options
    const kept = await this.asFirst(id, known)
    for (let attempt = kept.attempt + 1; ; attempt++) {
      const claim = {
        table: IDEMPOTENCY_TABLE.name,
        scope: NO_ORGANIZATION,
        id: `${id}.${attempt}`,
        row: { life },
        expiresAt: clock.now() + CRASHED_AFTER_MS,
      }
      const other = await tables.putIfAbsent<ClaimRow>(claim)
      // Killed between its claim and its row: the attempt after that one is free.
      if (other !== undefined && isEarlier(other.life, life)) continue
      if (other !== undefined) throw underWay()
      const row: KeptRow = { ...kept, state: 'running', attempt, life, aliveAt: clock.now() }
      await this.commit([this.change(id, row)])
      return this.run(id, row, request, true)
    }
  }

  private hasCrashed({ life, aliveAt }: KeptRow): boolean {
    return isEarlier(life, this.options.life) || Math.abs(this.options.clock.now() - aliveAt) >= CRASHED_AFTER_MS
  }

  private run(id: string, row: KeptRow, request: IdempotentRequest, isRepeat: boolean): Run {
    const stopBeating = this.beat(id, row)
    return {
      seed: Buffer.from(row.seed, 'base64url'),
      now: row.startedAt,
      isRepeat,
      mark: markOf(id, row),
      done: async (answer, revokedToken) => {
        await stopBeating()
        const text = JSON.stringify(answer)
        if (text.length > ANSWER_BYTES_MAX) return this.commit([this.change(id, { ...row, state: 'open' })])
        const sealed = this.options.keyring.encrypt(PURPOSE, text)
        const changes = [this.change(id, { ...row, state: 'done', answer: sealed })]
        if (revokedToken !== undefined)
          changes.push(this.changeForToken(revokedToken, request, { fingerprint: row.fingerprint, answer: sealed }))
        await this.commit(changes)
      },
      open: async () => {
        await stopBeating()
        await this.commit([this.change(id, { ...row, state: 'open' })])
      },
    }
  }

  /** Marks a long run alive now and then; answers a function that ends that. */
  private beat(id: string, row: KeptRow): () => Promise<void> {
    const { clock, logger } = this.options
    let marking = Promise.resolve()
    const mark = (): void => {
      marking = this.commit([this.change(id, { ...row, aliveAt: clock.now() })]).catch((error: unknown) => {
        logger.warn('a running request could not be marked alive', { error: String(error) })
      })
      cancel = clock.after(SIGN_OF_LIFE_MS, mark)
    }
    let cancel = clock.after(SIGN_OF_LIFE_MS, mark)
    return () => {
      cancel()
      return marking
    }
  }

  private change(id: string, row: KeptRow): RowChange {
    return { table: IDEMPOTENCY_TABLE.name, scope: NO_ORGANIZATION, id, row, expiresAt: row.startedAt + KEPT_MS }
  }

  private changeForToken(token: string, { operationId, key }: IdempotentRequest, row: TokenRow): RowChange {
    const expiresAt = this.options.clock.now() + REVOKED_TOKEN_MS
    return {
      table: IDEMPOTENCY_TABLE.name,
      scope: NO_ORGANIZATION,
      id: this.tokenId(token, operationId, key),
      row,
      expiresAt,
    }
  }

  private commit(changes: RowChange[]): Promise<void> {
    return this.options.tables.commit(changes)
  }

  private open(sealed: string): KeptAnswer {
    return JSON.parse(this.options.keyring.decrypt(PURPOSE, sealed)) as KeptAnswer
  }

  /** Derived from the logged mark of a request, and from the keyring, which nobody else has. */
  private seedOf(id: string, startedAt: number): string {
    return this.idOf(`seed|${id}|${startedAt}`)
  }

  private tokenId(token: string, operationId: string, key: string): string {
    return this.idOf(`token|${token}|${operationId}|${key}`)
  }

  private idOf(text: string): string {
    return this.options.keyring.hmac(PURPOSE, text).toString('base64url')
  }
}

const underWay = (): Failure => new Failure('in_progress', { retryAfterSeconds: 1 })
