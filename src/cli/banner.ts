import type { Config } from '../config.ts'
import { isLoopback } from '../config-values.ts'
import { version } from '../kit/operations/version.ts'

/** Tells the person at the terminal in plain words the address and how to sign in. */
export const banner = (url: string, dataPath: string, signIn: string): string =>
  `\nWaymark ${version()} is ready. Open ${url}\n${signIn}\nData: ${dataPath}. Stop it with Ctrl+C.\n\n`

export const SIGN_IN = 'Sign in with your account; docs/integrate.md shows how to make the first one.'

interface Login {
  email: string
  password: string
  /** File that stores it. */
  path: string
}

/**
 * The demo's login in the log and the terminal. Logs travel: if other machines reach the service, the password stays in
 * its file, unless --demo-login-public says otherwise.
 */
export const shownLogin = (
  { host, demoLoginPublic }: Pick<Config, 'host' | 'demoLoginPublic'>,
  { email, password, path }: Login,
): { fields: { [name: string]: string }; signIn: string } =>
  demoLoginPublic || isLoopback(host)
    ? { fields: { email, password }, signIn: `Sign in as ${email} with the password ${password}` }
    : { fields: { email, passwordFile: path }, signIn: `Sign in as ${email} with the password in ${path}` }
