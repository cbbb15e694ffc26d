// Who is signed in. The token stays in memory; the session's cookie, which no script sees, renews it in each tab.
import { ApiError, ask, get, type Json, orNothing, useBearer } from '../api/client.ts'

/** Where `account.js` leaves the answer of a link that signs in. */
const HANDED = 'waymark-signed-in'
/** Set while the browser has a session's cookie, which no script can see: a first visit asks for nothing. */
const HAS_COOKIE = 'waymark-session'
const CLIENT = { 'waymark-client': 'console' }
/** The organization that this browser, and above it this tab, was in. */
const ORGANIZATION = 'waymark-organization'
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
  /** The organization's: times are shown in it. */
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

  /** The time zone of the person, or of this machine. */
  get ownTimeZone(): string {
    return this.user?.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  }

  may(permission: string): boolean {
    return this.permissions.has(permission)
  }

  onToken(tell: (token: string) => void): void {
    this.#onToken.push(tell)
  }

  async take(signed: Signed): Promise<void> {
    this.#hold(signed)
    await this.lookAround()
    this.notice = undefined
    this.state = 'signed-in'
  }

  /** When the page opens: goes on with the session that this browser has. */
  async resume(): Promise<void> {
    if (hint.get()) await this.renew()
    if (this.token !== undefined) {
      await this.lookAround()
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
    remembered.set(undefined)
    this.#forget()
    this.notice = undefined
  }

  /** After a new password or second factor, which ended the session's cookie: goes on with one of its own. */
  async keep(password: string): Promise<void> {
    const body = { organizationId: this.organization?.organizationId, password, session: 'cookie' }
    const answer = await ask('POST', '/auth/switch-organization', { headers: CLIENT, body })
    this.#hold((await answer.json()) as Signed)
  }

  /** Opens another organization of the person. The page begins anew: nothing of this one stays in it. */
  async switchTo(organizationId: string): Promise<void> {
    await ask('POST', '/auth/refresh', { headers: CLIENT, body: { organizationId }, isAnonymous: true })
    remembered.set(organizationId)
    location.hash = '#/map'
    location.reload()
  }

  #hold(signed: Signed): void {
    this.token = signed.token
    useBearer({ token: signed.token, renew: () => this.renew() })
    this.user = signed.data
    this.organizations = signed.organizations ?? this.organizations
    remembered.set(this.organization?.organizationId)
    clearTimeout(this.#timer)
    const ms = Math.min(signed.expires_in * 1000 * RENEW_AT, TIMER_MS_MAX)
    this.#timer = setTimeout(() => void this.renew(), ms) as unknown as number
    for (const tell of this.#onToken) tell(signed.token)
  }

  /** What a role may do, and in which time zone the organization lives. */
  async lookAround(): Promise<void> {
    const [role, settings] = await Promise.all([
      orNothing<Json>(get(`/role/${this.user.roleId}`), UNREADABLE).catch(() => undefined),
      get('/organization/settings').catch(() => undefined),
    ])
    // What cannot be asked for just now stays as it was.
    if (role !== undefined || this.permissions.size === 0)
      this.permissions = new Set((role ?? UNREADABLE).data.permissions)
    this.timeZone = settings?.data.timeZone ?? this.timeZone
  }

  async #renew(): Promise<boolean> {
    try {
      const signed = await this.#refresh(this.organization?.organizationId ?? remembered.get())
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

  async #refresh(organizationId: string | undefined): Promise<Signed> {
    const body = organizationId === undefined ? {} : { organizationId }
    try {
      const response = await ask('POST', '/auth/refresh', { headers: CLIENT, body, isAnonymous: true })
      return (await response.json()) as Signed
    } catch (error) {
      const isOpen = this.user === undefined && organizationId !== undefined
      if (!isOpen || !(error instanceof ApiError) || error.status !== 404) throw error
      // It is not theirs, or not any more: the most recent one is.
      return this.#refresh(undefined)
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
const UNREADABLE: Json = {
  data: { permissions: ['view/tracker', 'view/location-history', 'view/geofence', 'view/task'] },
}

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

const remembered = {
  get: (): string | undefined => {
    try {
      return sessionStorage.getItem(ORGANIZATION) ?? localStorage.getItem(ORGANIZATION) ?? undefined
    } catch {
      return undefined
    }
  },
  set: (organizationId: string | undefined): void => {
    try {
      for (const storage of [sessionStorage, localStorage]) {
        if (organizationId === undefined) storage.removeItem(ORGANIZATION)
        else storage.setItem(ORGANIZATION, organizationId)
      }
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
