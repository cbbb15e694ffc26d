import type { EventLog } from '../../../engines/event-log.ts'
import { Failure } from '../../../kernel/errors.ts'
import { decodeJson, encodeJson, type EventMetadata, type Fact } from '../../../kernel/event.ts'
import { appendFacts } from '../../../kit/commands/handle-command.ts'
import type { IdSource, Wrote } from '../../../kit/http/route.ts'
import { SESSION, SESSION_STREAMS, type SessionBegan, type TokenRevoked } from '../events.ts'

interface SessionOrigin {
  ids: IdSource
  metadata: EventMetadata
}

/** Tokens of a stream that have not expired. */
interface SessionState {
  /** Oldest first. */
  live: Map<string, SessionBegan>
  ended: Set<string>
  version: number
}

const PAGE_EVENTS = 500
const TRIES = 50
/** Appends after which the stream is truncated: expired tokens are no longer needed. */
const TRUNCATE_EVERY = 256

/** Tokens of each identity, from their issue to their end; in a separate stream, since people log in for years. */
export class Sessions {
  private readonly log: EventLog

  constructor(log: EventLog) {
    this.log = log
  }

  /** Begins the session of a token after a password or a link, preceded by its browser session, if any. */
  async begin(identityId: string, begun: readonly SessionBegan[], origin: SessionOrigin): Promise<Wrote> {
    const { ids, metadata } = origin
    const type = SESSION.began
    const events = begun.map((one) => ({ id: ids.next(), type, data: encodeJson(one), isJson: true, metadata }))
    const { position, revision } = await this.log.append(streamOf(identityId), events, 'any')
    await this.truncateAt(identityId, { revision, count: events.length, at: begun[0].at })
    return { position, types: [type] }
  }

  /**
   * Begins the session of a token for a browser session; `renewed` continues that one, undefined if it stays unchanged.
   * @throws Failure unauthenticated if the browser session has ended
   */
  beginIn(
    identityId: string,
    token: SessionBegan,
    renewed: (browser: SessionBegan) => SessionBegan | undefined,
    origin: SessionOrigin,
  ): Promise<Wrote | undefined> {
    return this.write(identityId, token.at, origin, ({ live }) => {
      const browser = live.get(token.browserId ?? '')
      if (browser === undefined || browser.expiresAt <= token.at) throw new Failure('unauthenticated')
      if (live.has(token.jti)) return []
      const next = renewed(browser)
      return [began(token), ...(next === undefined ? [] : [began(next)])]
    })
  }

  /**
   * Ends a token, and begins the session of its successor, the last of `next`; repeated by the same request, it changes
   * nothing. @throws Failure unauthenticated if the token has ended otherwise.
   */
  replace(
    identityId: string,
    before: TokenRevoked,
    next: readonly SessionBegan[],
    origin: SessionOrigin,
  ): Promise<Wrote | undefined> {
    return this.write(identityId, before.at, origin, ({ live, ended }) => {
      if (live.has(next.at(-1)?.jti ?? '')) return []
      if (ended.has(before.jti)) throw new Failure('unauthenticated')
      return [endOf(before), ...next.map(began)]
    })
  }

  /** Ends a token. If it was issued for a browser session, that and its other tokens end too. */
  end(identityId: string, token: TokenRevoked, origin: SessionOrigin): Promise<Wrote | undefined> {
    return this.write(identityId, token.at, origin, ({ live, ended }) => {
      const browserId = live.get(token.jti)?.browserId ?? token.jti
      const others = [...live.values()].filter(
        (one) => one.jti !== token.jti && (one.jti === browserId || one.browserId === browserId),
      )
      const ends = others.map((one) => endOf(revocationOf(one, token.at)))
      return ended.has(token.jti) ? ends : [endOf(token), ...ends]
    })
  }

  /** Ends all sessions of the identity but one. `at` in RFC 3339. */
  endAll(
    identityId: string,
    { except, at }: { except?: string; at: string },
    origin: SessionOrigin,
  ): Promise<Wrote | undefined> {
    return this.write(identityId, at, origin, ({ live }) =>
      [...live.values()].filter(({ jti }) => jti !== except).map((session) => endOf(revocationOf(session, at))),
    )
  }

  /** Erases all sessions, including their addresses. */
  erase(identityId: string): Promise<void> {
    return this.log.erase(streamOf(identityId))
  }

  /** Sessions that have not ended, oldest first. */
  async live(identityId: string, now: number): Promise<SessionBegan[]> {
    const { live } = await this.read(identityId)
    return [...live.values()].filter(({ expiresAt }) => Date.parse(expiresAt) > now)
  }

  private async write(
    identityId: string,
    at: string,
    { ids, metadata }: SessionOrigin,
    decide: (state: SessionState) => Fact[],
  ): Promise<Wrote | undefined> {
    const eventIds: string[] = []
    for (let tries = 0; tries < TRIES; tries++) {
      const state = await this.read(identityId)
      const facts = decide(state)
      if (facts.length === 0) return undefined
      while (eventIds.length < facts.length) eventIds.push(ids.next())
      const wrote = await appendFacts(this.log, streamOf(identityId), facts, eventIds, state.version, metadata)
      if (wrote === undefined) continue
      await this.truncateAt(identityId, { revision: state.version + facts.length - 1, count: facts.length, at })
      return wrote
    }
    throw new Failure('conflict', { message: 'Others log in at the same time; try again.', retryAfterSeconds: 1 })
  }

  private async read(identityId: string): Promise<SessionState> {
    const state: SessionState = { live: new Map(), ended: new Set(), version: 0 }
    for (;;) {
      const events = await this.log.read(streamOf(identityId), state.version, PAGE_EVENTS)
      for (const { type, data, revision } of events) {
        const session = decodeJson<SessionBegan>(data)
        if (type === SESSION.ended) {
          state.live.delete(session.jti)
          state.ended.add(session.jti)
        } else if (!state.ended.has(session.jti)) state.live.set(session.jti, session)
        state.version = revision + 1
      }
      if (events.length < PAGE_EVENTS) return state
    }
  }

  /** Truncates every `TRUNCATE_EVERY` events; `count` is their number up to the revision. */
  private async truncateAt(
    identityId: string,
    { revision, count, at }: { revision: number; count: number; at: string },
  ): Promise<void> {
    if ((revision + 1) % TRUNCATE_EVERY < count) await this.truncate(identityId, Date.parse(at))
  }

  private async truncate(identityId: string, now: number): Promise<void> {
    const lasts = new Map<string, { revision: number; expiresAt: string }>()
    let from = 0
    for (let isWhole = false; !isWhole; ) {
      const events = await this.log.read(streamOf(identityId), from, PAGE_EVENTS)
      for (const { data, revision } of events) {
        const { jti, expiresAt } = decodeJson<SessionBegan>(data)
        lasts.set(jti, { revision, expiresAt })
        from = revision + 1
      }
      isWhole = events.length < PAGE_EVENTS
    }
    const kept = [...lasts.values()].filter(({ expiresAt }) => Date.parse(expiresAt) > now)
    await this.log.truncateBefore(streamOf(identityId), Math.min(from, ...kept.map(({ revision }) => revision)))
  }
}

/** Revocation that ends a session at once. */
export const revocationOf = (session: SessionBegan, at: string): TokenRevoked => {
  const { jti, organizationId, userId, expiresAt } = session
  return { jti, organizationId, userId, expiresAt, graceMs: 0, at }
}

const endOf = (data: TokenRevoked): Fact => ({ type: SESSION.ended, data })

const began = (data: SessionBegan): Fact => ({ type: SESSION.began, data })

const streamOf = (identityId: string): string => SESSION_STREAMS + identityId
