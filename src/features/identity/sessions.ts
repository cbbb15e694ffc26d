import type { EventLog } from '../../engines/event-log.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson, encodeJson, type EventMetadata, type Fact } from '../../kernel/event.ts'
import { appendFacts } from '../../kit/commands/handle-command.ts'
import type { IdSource, Wrote } from '../../kit/http/route.ts'
import { SESSION, SESSION_STREAMS, type SessionBegan, type TokenRevoked } from './events.ts'

interface SessionOrigin {
  ids: IdSource
  metadata: EventMetadata
}

/** What a stream says of tokens that have not ended by themselves. */
interface SessionState {
  /** Oldest first. */
  live: Map<string, SessionBegan>
  ended: Set<string>
  version: number
}

const PAGE_EVENTS = 500
const TRIES = 50
/** After so many appends the stream is truncated: what has ended by itself says nothing any more. */
const TRUNCATE_EVERY = 256

/** The tokens of each identity, from their issue to their end; a stream of their own, since people log in for years. */
export class Sessions {
  private readonly log: EventLog

  constructor(log: EventLog) {
    this.log = log
  }

  /** A token was issued to somebody who gave a password or followed a link. */
  async begin(identityId: string, session: SessionBegan, origin: SessionOrigin): Promise<Wrote> {
    const { ids, metadata } = origin
    const event = { id: ids.next(), type: SESSION.began, data: encodeJson(session), isJson: true, metadata }
    const { position, revision } = await this.log.append(streamOf(identityId), [event], 'any')
    if ((revision + 1) % TRUNCATE_EVERY === 0) await this.truncate(identityId, Date.parse(session.at))
    return { position, types: [SESSION.began] }
  }

  /**
   * Ends a token, and begins the session of the one that takes its place; done before, by the same request, it changes
   * nothing. @throws Failure unauthenticated when the token has ended otherwise.
   */
  replace(
    identityId: string,
    before: TokenRevoked,
    next: SessionBegan,
    origin: SessionOrigin,
  ): Promise<Wrote | undefined> {
    return this.write(identityId, origin, ({ live, ended }) => {
      if (live.has(next.jti)) return []
      if (ended.has(before.jti)) throw new Failure('unauthenticated')
      return [endOf(before), { type: SESSION.began, data: next }]
    })
  }

  end(identityId: string, token: TokenRevoked, origin: SessionOrigin): Promise<Wrote | undefined> {
    return this.write(identityId, origin, ({ ended }) => (ended.has(token.jti) ? [] : [endOf(token)]))
  }

  /** Ends every session of the identity but one. `at` in RFC 3339. */
  endAll(
    identityId: string,
    { except, at }: { except?: string; at: string },
    origin: SessionOrigin,
  ): Promise<Wrote | undefined> {
    return this.write(identityId, origin, ({ live }) =>
      [...live.values()].filter(({ jti }) => jti !== except).map((session) => endOf(revocationOf(session, at))),
    )
  }

  /** Nothing of them is left, nor from where they came. */
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
      if (wrote !== undefined) return wrote
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

  private async truncate(identityId: string, now: number): Promise<void> {
    for (let from = 0; ; ) {
      const events = await this.log.read(streamOf(identityId), from, PAGE_EVENTS)
      const kept = events.find(({ data }) => Date.parse(decodeJson<SessionBegan>(data).expiresAt) > now)
      from = kept?.revision ?? (events.at(-1)?.revision ?? from - 1) + 1
      if (kept !== undefined || events.length < PAGE_EVENTS) return this.log.truncateBefore(streamOf(identityId), from)
    }
  }
}

/** What ends a session at once. */
export const revocationOf = (
  { jti, organizationId, userId, expiresAt }: SessionBegan,
  at: string,
  graceMs = 0,
): TokenRevoked => ({ jti, organizationId, userId, expiresAt, graceMs, at })

const endOf = (data: TokenRevoked): Fact => ({ type: SESSION.ended, data })

const streamOf = (identityId: string): string => SESSION_STREAMS + identityId
