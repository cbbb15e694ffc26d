import { timingSafeEqual, createHash } from 'node:crypto'
import { type Caller, credentialKindOf, lacksSecondFactor } from '../kernel/caller.ts'
import type { Clock } from '../kernel/clock.ts'
import { Failure } from '../kernel/errors.ts'
import { isOpenForOwn, openedBy, type Route } from '../kit/http/route.ts'
import type { Exchange } from './exchange.ts'
import { type Allowance, RateLimiter } from './limits.ts'
import type { IngressOptions, RateLimits } from './options.ts'

/** Admits a request, or refuses it: address 429, 401, token or organization 429, 404 outside a rollout, 403. */
export class Admission {
  private readonly options: Pick<
    IngressOptions,
    'authenticate' | 'authenticateRevoked' | 'rollout' | 'metricsToken' | 'clock'
  >
  private readonly perAddress: RateLimiter | undefined
  private readonly perToken: RateLimiter | undefined
  private readonly perOrganization: RateLimiter | undefined

  constructor(
    options: Pick<IngressOptions, 'authenticate' | 'authenticateRevoked' | 'rollout' | 'metricsToken'> & {
      clock: Clock
      rateLimits?: RateLimits
    },
  ) {
    this.options = options
    const { token, organization, address } = options.rateLimits ?? {}
    const limiterOf = (policy: string, perSecond: number | undefined): RateLimiter | undefined =>
      perSecond === undefined ? undefined : new RateLimiter(policy, perSecond, options.clock)
    this.perAddress = limiterOf('address', address)
    this.perToken = limiterOf('token', token)
    this.perOrganization = limiterOf('organization', organization)
  }

  /** @throws Failure `rate_limited` */
  countAddress({ client, allowances }: Exchange): void {
    this.perAddress?.take(client.network, allowances)
  }

  /** The caller; undefined where the route needs none. The token is the bearer unless the route takes another. */
  async admit(exchange: Exchange, route: Route, token = exchange.bearer): Promise<Caller | undefined> {
    if (route.access === 'public') return undefined
    if (route.access === 'operator') return this.admitOperator(exchange)
    const { headers, allowances } = exchange
    if (route.forMachine === true && exchange.isLocal) return undefined
    if (token === undefined && route.withoutToken !== undefined) {
      const caller = await route.withoutToken({ headers, now: this.options.clock.now() })
      if (caller !== undefined) return this.allow(this.counted(caller, allowances), route)
    }
    return this.allow(await this.identify(token, allowances), route)
  }

  /** The caller whose token this route may have revoked before. @throws Failure as `admit` */
  async admitRevoked({ bearer }: Exchange, route: Route): Promise<Caller> {
    const { authenticateRevoked } = this.options
    if (bearer === undefined || authenticateRevoked === undefined) throw new Failure('unauthenticated')
    return this.allow(await authenticateRevoked(bearer), route)
  }

  private allow(caller: Caller, route: Route): Caller {
    if (route.rollout !== undefined && !this.options.rollout(caller)) throw new Failure('not_found')
    if (credentialKindOf(caller) === 'service') assertForPrograms(route)
    if (!mayCall(caller, route)) throw new Failure('forbidden')
    if (route.enrols !== true && lacksSecondFactor(caller)) throw new Failure('second_factor_required')
    return caller
  }

  /** @throws Failure `unauthenticated`, `rate_limited`, `engine_down` */
  async identify(token: string | undefined, allowances: Allowance[] = []): Promise<Caller> {
    if (token === undefined || token === '') throw new Failure('unauthenticated')
    return this.counted(await this.options.authenticate(token), allowances)
  }

  private counted(caller: Caller, allowances: Allowance[]): Caller {
    this.perToken?.take(credentialOf(caller), allowances)
    this.perOrganization?.take(caller.organizationId, allowances)
    return caller
  }

  private admitOperator(exchange: Exchange): undefined {
    const { metricsToken } = this.options
    if (metricsToken === undefined) {
      if (exchange.isLocal) return undefined
      throw new Failure('forbidden', {
        message: 'Without a metrics token this answers only to the machine that it runs on.',
      })
    }
    if (exchange.bearer === undefined || !isSame(exchange.bearer, metricsToken)) throw new Failure('unauthenticated')
    return undefined
  }
}

const credentialOf = (caller: Caller): string => {
  if (caller.kind === 'user') return `token:${caller.jti}`
  return caller.kind === 'tracker' ? `tracker:${caller.organizationId}:${caller.trackerId}` : `key:${caller.keyId}`
}

/** Name of the caller, whatever its credential. */
export const identityOf = (caller: Caller): string => {
  if (caller.kind === 'user') return `user:${caller.organizationId}:${caller.userId}`
  return credentialOf(caller)
}

/** @throws Failure forbidden for a route about a person, or about something that moves */
export const assertForPrograms = ({ access, isPersonal }: Pick<Route, 'access' | 'isPersonal'>): void => {
  if (isPersonal === true)
    throw new Failure('forbidden', { message: 'This is for people who sign in; a service account does not.' })
  if (access === 'points')
    throw new Failure('forbidden', { message: 'A service account has no tracker; send points with an ingest key.' })
}

const mayCall = (caller: Caller, { access }: Route): boolean => {
  if (access === 'points') return true
  if (caller.kind !== 'user') return false
  if (typeof access === 'string' || isOpenForOwn(access, caller)) return true
  return openedBy(access).some((one) => caller.permissions.has(one))
}

const isSame = (one: string, other: string): boolean => timingSafeEqual(digest(one), digest(other))

const digest = (text: string): Buffer => createHash('sha256').update(text).digest()
