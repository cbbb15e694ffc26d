// Settings that the service sends with the page.

interface PageSettings {
  demoLogin?: { email: string; password: string }
  /** Strangers may create organizations. */
  maySignUp?: boolean
  staleAfterMs: number
  offlineAfterMs: number
  /** The service has an archive of streets. */
  hasStreets?: boolean
  /** The operator's style, which replaces the shipped base map. */
  mapStyleUrl?: string
}

const DEFAULTS: PageSettings = { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 }

export const pageSettings: PageSettings = {
  ...DEFAULTS,
  ...JSON.parse(document.querySelector<HTMLMetaElement>('meta[name=waymark]')?.content || '{}'),
}
