// Who is signed in. The token stays in memory; the session's cookie, which no script sees, renews it in each tab.
import { ApiError, ask, get, type Json, useBearer } from '../api/client.ts'

/** Where `account.js` leaves the answer of a link that signs in. */
const HANDED = 'waymark-signed-in'
/** Set while the browser has a session's cookie, which no script can see: a first visit asks for nothing. */
const HAS_COOKIE = 'waymark-session'
const CLIENT = { 'waymark-client': 'console' }
/** This part of a token's life has passed when it is renewed. */
const RENEW_AT = 0.8
const RETRY_MS = 10_000
/** Browsers count down at most so long. */
const TIMER_MS_MAX = 2 ** 31 - 1

export interface Organization {
  organizationId: string
  organizationName: string
  isCurrent: boolean
  roleName: string
}

interface Signed {
  token: string
  expires_in: number
  data: Json
  organizations: Organization[]
}

class Session {
  /** `unknown` until the cookie was tried. */
  state = $state<'unknown' | 'signed-out' | 'signed-in'>('unknown')
  user = $state<Json>()
  organizations = $state<Organization[]>([])
  permissions = $state<ReadonlySet<string>>(new Set())
  timeZone = $state('UTC')
  /** Why one is asked to sign in again. */
  notice = $state<'ended' | 'elsewhere' | undefined>()
  token: string | undefined
  #timer = 0
  #renewing: Promise<boolean> | undefined
  #onToken: ((token: string) => void)[] = []

  get organization(): Organization | undefined {
    return this.organizations.find(({ isCurrent }) => isCurrent)
  }

  may(permission: string): boolean {
    return this.permissions.has(permission)
  }

  onToken(tell: (token: string) => void): void {
    this.#onToken.push(tell)
  }

  async take(signed: Signed): Promise<void> {
    this.#hold(signed)
    await this.#lookAround()
    this.notice = undefined
    this.state = 'signed-in'
  }

  /** When the page opens: goes on with the session that this browser has. */
  async resume(): Promise<void> {
    if (hint.get()) await this.renew()
    if (this.token !== undefined) {
      await this.#lookAround()
      this.state = 'signed-in'
    } else if (this.state === 'unknown') this.state = 'signed-out'
  }

  /** Answers whether there is a token again. Calls at the same time are one. */
  renew(): Promise<boolean> {
    this.#renewing ??= this.#renew().finally(() => {
      this.#renewing = undefined
    })
    return this.#renewing
  }

  async signOut(): Promise<void> {
    await ask('POST', '/auth/logout', {}).catch(() => undefined)
    hint.set(false)
    this.#forget()
    this.notice = undefined
  }

  #hold(signed: Signed): void {
    this.token = signed.token
    useBearer({ token: signed.token, renew: () => this.renew() })
    this.user = signed.data
    this.organizations = signed.organizations ?? this.organizations
    clearTimeout(this.#timer)
    const ms = Math.min(signed.expires_in * 1000 * RENEW_AT, TIMER_MS_MAX)
    this.#timer = setTimeout(() => void this.renew(), ms) as unknown as number
    for (const tell of this.#onToken) tell(signed.token)
  }

  /** What a role may do, and in which time zone the organization lives. */
  async #lookAround(): Promise<void> {
    const [role, settings] = await Promise.all([
      get(`/role/${this.user.roleId}`).catch(() => undefined),
      get('/organization/settings').catch(() => undefined),
    ])
    this.permissions = new Set(role?.data.permissions ?? ALL_VIEWS)
    this.timeZone = settings?.data.timeZone ?? this.timeZone
  }

  async #renew(): Promise<boolean> {
    const organizationId = this.organization?.organizationId
    try {
      const body = organizationId === undefined ? {} : { organizationId }
      const response = await ask('POST', '/auth/refresh', { headers: CLIENT, body, isAnonymous: true })
      const signed = (await response.json()) as Signed
      if (this.user !== undefined && signed.data._id !== this.user._id) {
        // Somebody else has signed in in another tab: nothing of the one is shown to the other.
        location.reload()
        return false
      }
      this.#hold(signed)
      return true
    } catch (error) {
      const isAway = !(error instanceof ApiError) || error.status === 0 || error.status >= 429
      if (isAway) {
        this.#timer = setTimeout(() => void this.renew(), RETRY_MS) as unknown as number
        return false
      }
      if (this.state === 'signed-in') this.notice = 'ended'
      hint.set(false)
      this.#forget()
      return false
    }
  }

  #forget(): void {
    clearTimeout(this.#timer)
    this.token = undefined
    useBearer({ token: undefined, renew: async () => false })
    this.user = undefined
    this.organizations = []
    this.permissions = new Set()
    this.state = 'signed-out'
  }
}

/** Shown where a role cannot be read: the service answers 403 to what is not allowed. */
const ALL_VIEWS = ['view/tracker', 'view/location-history', 'view/geofence', 'view/task']

export const session = new Session()

const hint = {
  get: (): boolean => {
    try {
      return localStorage.getItem(HAS_COOKIE) !== null
    } catch {
      return true // Storage is denied, perhaps not cookies: asking costs little.
    }
  },
  set: (isThere: boolean): void => {
    try {
      if (isThere) localStorage.setItem(HAS_COOKIE, 'yes')
      else localStorage.removeItem(HAS_COOKIE)
    } catch (error) {
      if (!(error instanceof DOMException)) throw error
    }
  },
}

/** Takes what a link or a sign-in elsewhere left, once; it stays in no storage and no address. */
export const takeHanded = (): { answer?: Json; code?: string; failed?: boolean } => {
  const back = new URLSearchParams(location.hash.slice(1))
  if (back.has('code') || back.has('error')) {
    history.replaceState(null, '', location.pathname)
    return back.has('code') ? { code: back.get('code')! } : { failed: true }
  }
  try {
    const handed = sessionStorage.getItem(HANDED)
    sessionStorage.removeItem(HANDED)
    return handed === null ? {} : { answer: JSON.parse(handed) }
  } catch {
    return {} // Storage is denied: there is nothing in it.
  }
}

/** Sends a form of sign-in, which also sets the session's cookie. */
export const sendSignIn = async (path: string, body: { [member: string]: unknown }): Promise<Json> => {
  const asked = { headers: CLIENT, body: { ...body, session: 'cookie' }, isAnonymous: true }
  const answer = await (await ask('POST', path, asked)).json()
  hint.set(true)
  return answer
}
