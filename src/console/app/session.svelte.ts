// The signed-in user. The token stays in memory; the session's cookie, invisible to scripts, renews it in each tab.
import { ApiError, ask, get, type Json, orNothing, useBearer } from '../api/client.ts'
import { hint, remembered } from './session-storage.ts'

const CLIENT = { 'waymark-client': 'console' }
/** Share of a token's life after which it is renewed. */
const RENEW_AT = 0.8
const RETRY_MS = 10_000
/** Pauses between looks at what the user may do while the service does not answer: each twice as long as the last. */
const LOOK_MS = 1_000
const LOOK_MS_MAX = 60_000
/** Longest timer of browsers. */
const TIMER_MS_MAX = 2 ** 31 - 1

export interface Organization {
  /** The person in it. */
  userId: string
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
  /** What the user may do could not be loaded since they signed in. */
  isUnsure = $state(false)
  /** Time zone of the organization, where the user may know it. */
  #organizationZone = $state<string>()
  /** Reason for the request to sign in again. */
  notice = $state<'ended' | 'elsewhere' | undefined>()
  token: string | undefined
  /** Whom this page has shown data of, a person in an organization: nobody else may see it. */
  #shownTo: string | undefined
  #timer = 0
  #renewing: Promise<boolean> | undefined
  #onToken: ((token: string) => void)[] = []
  #onPermissions: (() => void)[] = []
  #looking: Promise<void> | undefined
  #isLookDue = false
  #lookTimer = 0
  #lookMs = LOOK_MS

  get organization(): Organization | undefined {
    return this.organizations.find(({ isCurrent }) => isCurrent)
  }

  /** Time zone of the person, or of this machine. */
  get ownTimeZone(): string {
    return this.user?.timeZone ?? Intl.DateTimeFormat().resolvedOptions().timeZone
  }

  /** Time zone in which times are shown. */
  get timeZone(): string {
    return this.#organizationZone ?? this.ownTimeZone
  }

  may(permission: string): boolean {
    return this.permissions.has(permission)
  }

  /** Whether it is certain that the user may not. */
  mayNot(permission: string): boolean {
    return this.user !== undefined && !this.isUnsure && !this.may(permission)
  }

  onToken(tell: (token: string) => void): void {
    this.#onToken.push(tell)
  }

  /** Calls `tell` whenever the user may do something else than before. */
  onPermissions(tell: () => void): void {
    this.#onPermissions.push(tell)
  }

  async take(answer: Signed): Promise<void> {
    const signed = await this.#here(answer)
    if (this.#isOfAnother(signed)) {
      remembered.set(signed.organizations.find(({ isCurrent }) => isCurrent)?.organizationId)
      return location.reload()
    }
    this.#hold(signed)
    await this.lookAround()
    this.notice = undefined
    this.state = 'signed-in'
  }

  /** When the page opens: resumes the session of this browser. */
  async resume(): Promise<void> {
    if (hint.get()) await this.renew()
    if (this.token !== undefined) {
      await this.lookAround()
      this.state = 'signed-in'
    } else if (this.state === 'unknown') this.state = 'signed-out'
  }

  /** Returns whether there is a token again. Simultaneous calls share one request. */
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

  /** After a new password or second factor, which ended the session's cookie: begins another session. */
  async keep(password: string): Promise<void> {
    const body = { organizationId: this.organization?.organizationId, password, session: 'cookie' }
    const answer = await ask('POST', '/auth/switch-organization', { headers: CLIENT, body })
    this.#hold((await answer.json()) as Signed)
  }

  /** Switches to another organization of the person. The page reloads, so nothing of this one stays in it. */
  async switchTo(organizationId: string): Promise<void> {
    await ask('POST', '/auth/refresh', { headers: CLIENT, body: { organizationId }, isAnonymous: true })
    remembered.set(organizationId)
    location.hash = '#/map'
    location.reload()
  }

  /** A sign-in opens the organization that was opened last, perhaps in another tab: this page goes on in its own. */
  async #here(signed: Signed): Promise<Signed> {
    const own = signed.organizations.find(({ userId }) => userId === this.#shownTo)
    return own === undefined || !this.#isOfAnother(signed) ? signed : this.#refresh(own.organizationId)
  }

  #isOfAnother({ data }: Signed): boolean {
    return this.#shownTo !== undefined && data._id !== this.#shownTo
  }

  #hold(signed: Signed): void {
    this.token = signed.token
    useBearer({ token: signed.token, renew: () => this.renew(), refused: () => void this.lookAround() })
    this.user = signed.data
    this.#shownTo = signed.data._id
    this.organizations = signed.organizations ?? this.organizations
    remembered.set(this.organization?.organizationId)
    clearTimeout(this.#timer)
    const ms = Math.min(signed.expires_in * 1000 * RENEW_AT, TIMER_MS_MAX)
    this.#timer = setTimeout(() => void this.renew(), ms) as unknown as number
    for (const tell of this.#onToken) tell(signed.token)
  }

  /** Loads what the user may do and the organization's time zone; where the service does not answer, again later. */
  lookAround(): Promise<void> {
    // An answer that is under way may be older than the reason to ask.
    this.#isLookDue = this.#looking !== undefined
    this.#looking ??= this.#look().finally(() => {
      this.#looking = undefined
      if (this.#isLookDue && this.token !== undefined) void this.lookAround()
    })
    return this.#looking
  }

  async #look(): Promise<void> {
    clearTimeout(this.#lookTimer)
    const of = this.user?._id
    const own = await loaded('/user/permissions')
    if (of === undefined || this.user?._id !== of) return
    // Values that cannot be loaded now stay unchanged.
    if (own?.data.permissions !== undefined) this.#mayNow(new Set(own.data.permissions))
    const settings = own === undefined ? undefined : await this.#settings()
    if (this.user?._id !== of) return
    this.#organizationZone = settings?.data.timeZone ?? this.#organizationZone
    this.isUnsure = own === undefined && (this.isUnsure || this.permissions.size === 0)
    if (own !== undefined && settings !== undefined) {
      this.#lookMs = LOOK_MS
      return
    }
    this.#lookTimer = setTimeout(() => void this.lookAround(), this.#lookMs) as unknown as number
    this.#lookMs = Math.min(2 * this.#lookMs, LOOK_MS_MAX)
  }

  #settings(): Promise<Json> | Json {
    return this.may('view/organization') ? loaded('/organization/settings') : NOTHING
  }

  #mayNow(permissions: ReadonlySet<string>): void {
    const isSame = permissions.size === this.permissions.size && [...permissions].every((one) => this.may(one))
    if (isSame) return
    this.permissions = permissions
    for (const tell of this.#onPermissions) tell()
  }

  async #renew(): Promise<boolean> {
    try {
      const signed = await this.#refresh(this.organization?.organizationId ?? remembered.get())
      if (this.#isOfAnother(signed)) {
        // Somebody else has signed in in another tab.
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
      // They are no longer a member: the most recent organization is used.
      return this.#refresh(undefined)
    }
  }

  #forget(): void {
    clearTimeout(this.#timer)
    clearTimeout(this.#lookTimer)
    this.token = undefined
    useBearer({ token: undefined, renew: async () => false, refused: () => undefined })
    this.user = undefined
    this.organizations = []
    this.permissions = new Set()
    this.isUnsure = false
    this.state = 'signed-out'
  }
}

const NOTHING: Json = { data: {} }

/** Undefined while the service does not answer; without content where the caller may not read it. */
const loaded = (path: string): Promise<Json> => orNothing<Json>(get(path), NOTHING).catch(() => undefined)

export const session = new Session()

/** Sends a sign-in form, which also sets the session's cookie. */
export const sendSignIn = async (path: string, body: { [member: string]: unknown }): Promise<Json> => {
  const asked = { headers: CLIENT, body: { ...body, session: 'cookie' }, isAnonymous: true }
  const answer = await (await ask('POST', path, asked)).json()
  hint.set(true)
  return answer
}
