import type { Keyring } from '../../kit/keys/keyring.ts'
import type { Details } from './action-type.ts'
import type { AutomationRow } from './views.ts'
import { RecentMap } from '../../kernel/recent-map.ts'

const DETAILS = 'automation-details'
const SECRET = 'automation-secret'
const ANSWER = 'automation-answer'
/** Number of automations whose decrypted texts are cached across attempts. */
const OPENED_MAX = 2_000

/** How long the previous secret signs after a rotation. */
export const PREVIOUS_SECRET_MS = 24 * 3_600_000

/** A signing secret in the format of Standard Webhooks: 256 bits derived from the seed. */
export const newSecret = (keyring: Keyring, seed: string): string =>
  `whsec_${keyring.hmac('webhook-secret', seed).toString('base64')}`

export const sealSecret = (keyring: Keyring, secret: string): string => keyring.encrypt(SECRET, secret)
export const sealDetails = (keyring: Keyring, details: unknown): string =>
  keyring.encrypt(DETAILS, JSON.stringify(details))
export const sealAnswer = (keyring: Keyring, answer: string): string => keyring.encrypt(ANSWER, answer)
export const openAnswer = (keyring: Keyring, sealed: string): string => keyring.decrypt(ANSWER, sealed)

export const openDetails = (keyring: Keyring, { details }: Pick<AutomationRow, 'details'>): Details =>
  JSON.parse(opened(keyring, DETAILS, details)) as Details

/** Secrets that currently sign, newest first. */
export const openSecrets = (
  keyring: Keyring,
  { secret, previousSecret }: Pick<AutomationRow, 'secret' | 'previousSecret'>,
  now: number,
): string[] => {
  const secrets = [opened(keyring, SECRET, secret)]
  if (previousSecret !== undefined && now < previousSecret.until)
    secrets.push(opened(keyring, SECRET, previousSecret.secret))
  return secrets
}

const known = new RecentMap<string, string>(OPENED_MAX / 2)

const opened = (keyring: Keyring, purpose: string, sealed: string): string => {
  const found = known.get(sealed)
  if (found !== undefined) return found
  const text = keyring.decrypt(purpose, sealed)
  known.set(sealed, text)
  return text
}
