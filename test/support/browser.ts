import { existsSync } from 'node:fs'

export const CHROMIUM = '/usr/bin/chromium'
/** Without sandbox and without calls home. */
export const FLAGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
]
/** For tests that need it. */
export const skip = existsSync(CHROMIUM) ? false : `${CHROMIUM} is not installed`
