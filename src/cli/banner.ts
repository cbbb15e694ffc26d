import type { Config } from '../config.ts'
import { isLoopback } from '../config-values.ts'
import { version } from '../kit/operations/version.ts'

/** Says in plain words where to look and how to sign in, for the person at the terminal. */
export const banner = (url: string, dataPath: string, signIn: string): string =>
  `\nWaymark ${version()} is ready. Open ${url}\n${signIn}\nData: ${dataPath}. Stop it with Ctrl+C.\n\n`

export const SIGN_IN = 'Sign in with your account; docs/integrate.md shows how to make the first one.'

interface Login {
  email: string
  password: string
  /** The file that keeps it. */
  path: string
}

/**
 * What the log and the terminal say of the demo's login. Logs travel: where others than this machine reach the service, the
 * password stays in its file, unless --demo-login-public says otherwise.
 */
export const shownLogin = (
  { host, demoLoginPublic }: Pick<Config, 'host' | 'demoLoginPublic'>,
  { email, password, path }: Login,
): { fields: { [name: string]: string }; signIn: string } =>
  demoLoginPublic || isLoopback(host)
    ? { fields: { email, password }, signIn: `Sign in as ${email} with the password ${password}` }
    : { fields: { email, passwordFile: path }, signIn: `Sign in as ${email} with the password in ${path}` }
