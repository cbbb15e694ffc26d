import type { TableStore } from '../../../engines/table-store.ts'
import { Failure } from '../../../kernel/errors.ts'
import { NO_ORGANIZATION, type TableDeclaration } from '../../../kernel/table.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import type { GuessGuard } from '../passwords/passwords.ts'

/**
 * Blocks after too many failures, until their end, and networks from which identities logged in. Written directly, not
 * by a projection.
 */
const LOGIN_BLOCKS: TableDeclaration = { name: 'login-blocks', version: 1, lives: 'row' }

const FAILURES_MAX = 5
/** Many people may share one address. */
const ADDRESS_FAILURES_MAX = 50
const FAILURE_WINDOW_MS = 15 * 60_000
/** Attempts at second factors, right and wrong: six-digit codes, three valid at a time, can be found by trying. */
const CODE_LIMITS = [
  { name: 'quarter', max: 10, windowMs: 15 * 60_000 },
  { name: 'day', max: 50, windowMs: 86_400_000 },
]
/** How long a network counts as a person's own after a login. */
const KNOWN_MS = 30 * 86_400_000
/** Interval of rewriting it. */
const KNOWN_AGAIN_MS = 86_400_000

/** Identity of a login, and its number of proofs then. */
interface Standing {
  identityId: string
  proofs: number
}

type Tables = Pick<TableStore, 'declare' | 'getMany' | 'increment' | 'commit'>

/**
 * Counts failed logins across all nodes, by e-mail (whether or not anybody has it) and by network. A network from which
 * the identity logged in recently has its own count: strangers who guess elsewhere lock nobody out.
 */
export class LoginThrottle {
  private readonly tables: Tables
  private readonly keyring: Keyring
  private declared: Promise<void> | undefined

  constructor(tables: Tables, keyring: Keyring) {
    this.tables = tables
    this.keyring = keyring
  }

  guard(email: string, network: string, now: number): GuessGuard {
    return {
      network,
      isKnown: () => this.isKnown(email, network, now),
      admit: () => this.admit(email, network, now),
      noteFailure: () => this.noteFailure(email, network, now),
    }
  }

  /** Counts a code before it is checked, so that simultaneous ones count too. @throws Failure rate_limited */
  async countCode(email: string, network: string, now: number): Promise<void> {
    const identity = normalizeKey(email)
    const whose = (await this.isKnown(email, network, now)) ? `own-code:${identity}|${network}` : `code:${identity}`
    for (const { name, max, windowMs } of CODE_LIMITS) {
      const { count, expiresAt } = await this.tables.increment(NO_ORGANIZATION, this.idOf(`${name}-${whose}`), windowMs)
      if (count > max)
        throw new Failure('rate_limited', {
          message: 'Too many codes; try again later.',
          retryAfterSeconds: Math.max(1, Math.ceil((expiresAt - now) / 1000)),
        })
    }
  }

  /** Records that the identity logged in from there, after `proofs` proofs. */
  async noteLogin(email: string, network: string, { identityId, proofs }: Standing, now: number): Promise<void> {
    await this.declare()
    const until = now + KNOWN_MS
    const [row] = await this.rows<Standing>([this.knownKey(email, network)])
    const isSame = row?.identityId === identityId && row.proofs === proofs
    if (!isSame || row.until < until - KNOWN_AGAIN_MS)
      await this.put(this.knownKey(email, network), until, { identityId, proofs })
  }

  /** Networks of logins before this proof no longer count as theirs: they may be somebody else's. */
  async noteProof(email: string, { identityId, proofs }: Standing, now: number): Promise<void> {
    await this.declare()
    await this.put(this.provenKey(email), now + KNOWN_MS, { identityId, proofs })
  }

  /** @throws Failure rate_limited while one of the counts is full. */
  private async admit(email: string, network: string, now: number): Promise<void> {
    const keys = await this.countsOf(email, network, now)
    const ids = keys.map(({ id }) => id)
    const rows = await this.rows(ids)
    const until = Math.max(...rows.map((row) => row?.until ?? 0))
    if (until <= now) return
    throw new Failure('rate_limited', {
      message: 'Too many failed logins; try again later.',
      retryAfterSeconds: Math.ceil((until - now) / 1000),
    })
  }

  private async noteFailure(email: string, network: string, now: number): Promise<void> {
    const counts = await this.countsOf(email, network, now)
    await Promise.all(
      counts.map(async ({ id, max }) => {
        const { count, expiresAt } = await this.tables.increment(NO_ORGANIZATION, id, FAILURE_WINDOW_MS)
        if (count >= max) await this.put(id, expiresAt)
      }),
    )
  }

  /** Counters that a login from there increases, and is refused by. */
  private async countsOf(email: string, network: string, now: number): Promise<{ id: string; max: number }[]> {
    const identity = normalizeKey(email)
    if (await this.isKnown(email, network, now))
      return [{ id: this.idOf(`own:${identity}|${network}`), max: FAILURES_MAX }]
    return [
      { id: this.idOf(`identity:${identity}`), max: FAILURES_MAX },
      { id: this.idOf(`address:${network}`), max: ADDRESS_FAILURES_MAX },
    ]
  }

  private async isKnown(email: string, network: string, now: number): Promise<boolean> {
    await this.declare()
    const [known, proven] = await this.rows<Standing>([this.knownKey(email, network), this.provenKey(email)])
    if (known === undefined || known.until <= now) return false
    return proven === undefined || (known.identityId === proven.identityId && known.proofs >= proven.proofs)
  }

  private rows<Said>(ids: readonly string[]): Promise<(({ until: number } & Said) | undefined)[]> {
    return this.tables.getMany<{ until: number } & Said>(LOGIN_BLOCKS.name, NO_ORGANIZATION, ids)
  }

  private put(id: string, until: number, said: object = {}): Promise<void> {
    return this.tables.commit([
      { table: LOGIN_BLOCKS.name, scope: NO_ORGANIZATION, id, row: { until, ...said }, expiresAt: until },
    ])
  }

  private async declare(): Promise<void> {
    this.declared ??= this.tables.declare(LOGIN_BLOCKS)
    try {
      await this.declared
    } catch (error) {
      this.declared = undefined
      throw error
    }
  }

  private knownKey(email: string, network: string): string {
    return this.idOf(`known:${normalizeKey(email)}|${network}`)
  }

  private provenKey(email: string): string {
    return this.idOf(`proven:${normalizeKey(email)}`)
  }

  // Hashed, so that no table holds typed addresses.
  private idOf(key: string): string {
    return `login-${this.keyring.hmac('login-throttle', key).toString('base64url')}`
  }
}
