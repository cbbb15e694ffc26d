// What the service tells the page when it sends it.

interface PageSettings {
  demoLogin?: { email: string; password: string }
  /** Strangers may make organizations. */
  maySignUp?: boolean
  staleAfterMs: number
  offlineAfterMs: number
  /** The service has an archive of streets. */
  hasStreets?: boolean
  /** A style of the operator's in place of the shipped ground. */
  mapStyleUrl?: string
}

const DEFAULTS: PageSettings = { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 }

export const pageSettings: PageSettings = {
  ...DEFAULTS,
  ...JSON.parse(document.querySelector<HTMLMetaElement>('meta[name=waymark]')?.content || '{}'),
}
