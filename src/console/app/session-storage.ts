// What the browser keeps of a session. Without storage nothing is kept.
import type { Json } from '../api/client.ts'

/** Storage key of the answer that `account.js` stores for a link that signs in. */
const HANDED = 'waymark-signed-in'
/** Set while the browser has a session's cookie, which no script can see: a first visit sends no request. */
const HAS_COOKIE = 'waymark-session'
/** Storage key of the last organization of this browser and, with precedence, of this tab. */
const ORGANIZATION = 'waymark-organization'

export const hint = {
  get: (): boolean => {
    try {
      return localStorage.getItem(HAS_COOKIE) !== null
    } catch {
      return true // Storage is denied, cookies perhaps not: a request costs little.
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

export const remembered = {
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

/** Takes the result of a link or an external sign-in, once; it stays in no storage and no address. */
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
    return {} // Storage is denied: it is empty.
  }
}
