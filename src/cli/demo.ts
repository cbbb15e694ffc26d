import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Clock } from '../kernel/clock.ts'
import type { Logger } from '../kernel/logger.ts'
import { pause } from '../kit/consumers/retry.ts'
import { ApiClient, dataOf } from './api-client.ts'
import { replayTrace } from './replay-trace.ts'

interface DemoLogin {
  email: string
  password: string
  ingestKey?: string
}

const DEMO_FOLDER = fileURLToPath(new URL('../../../demo/', import.meta.url))
const RETRY_MS = 5_000

export interface DemoOptions {
  url: string
  dataPath: string
  clock: Clock
  logger: Logger
  signal: AbortSignal
  /** Called once the login works. */
  onLogin: (login: { email: string; password: string; path: string }) => void
}

/**
 * The demo: its own organization with a few fences, and the shipped trace replayed repeatedly in real time. It uses
 * only the public API. The login is created once and kept in the data folder.
 */
export const runDemo = async (options: DemoOptions): Promise<void> => {
  const { url, clock, logger, signal } = options
  // It calls its own process, whose certificate is for another name, or of an unknown issuer.
  const client = new ApiClient(url, { rejectUnauthorized: false })
  const path = join(options.dataPath, 'demo.json')
  const login = await openDemo(client, path)
  options.onLogin({ email: login.email, password: login.password, path })
  while (!signal.aborted) {
    try {
      const replay = {
        client,
        credential: login.ingestKey as string,
        path: join(DEMO_FOLDER, 'fleet-warsaw.csv.gz'),
        speed: 1,
        clock,
        signal,
      }
      const { acknowledged } = await replayTrace(replay)
      logger.info('demo trace replayed, beginning again', { points: acknowledged })
    } catch (error) {
      if (signal.aborted) return
      logger.warn('demo replay interrupted, trying again', { error: String(error) })
      await pause(clock, RETRY_MS)
    }
  }
}

const openDemo = async (client: ApiClient, path: string): Promise<DemoLogin> => {
  const isNew = !existsSync(path)
  let login = isNew ? newLogin('demo') : (JSON.parse(readFileSync(path, 'utf8')) as DemoLogin)
  const keep = (): void => writeFileSync(path, JSON.stringify(login), { mode: 0o600 })
  keep() // before it is used: a start interrupted here reuses it
  let token = await signIn(client, login)
  if (token === undefined && isNew) {
    // Data of an earlier demo is inaccessible without its login.
    login = newLogin(`demo-${randomBytes(4).toString('hex')}`)
    keep()
    token = await signIn(client, login)
  }
  if (token === undefined) throw new Error(`the demo cannot sign in: ${path} has another password than ${login.email}`)
  if (login.ingestKey !== undefined) return login
  const group = dataOf(await client.call('POST', '/geofence-group', { token, body: { name: 'Warsaw' } })) as {
    _id: string
  }
  const fences = JSON.parse(readFileSync(join(DEMO_FOLDER, 'fences.geojson'), 'utf8'))
  dataOf(
    await client.call('POST', `/geofences/import?geofenceGroupId=${group._id}&nameProperty=name`, {
      token,
      body: fences,
    }),
  )
  const key = dataOf(
    await client.call('POST', '/ingest-key', { token, body: { name: 'Demo gateway', autoCreate: true } }),
  ) as { key: string }
  login = { ...login, ingestKey: key.key }
  keep()
  return login
}

const newLogin = (name: string): DemoLogin => ({
  email: `${name}@waymark.example`,
  password: randomBytes(12).toString('base64url'),
})

/** Creates the organization if there is none yet; undefined if the e-mail has another password. */
const signIn = async (client: ApiClient, { email, password }: DemoLogin): Promise<string | undefined> => {
  const answer = await client.call('POST', '/auth/login', { body: { email, password } })
  if (answer.status === 200) return answer.json.token as string
  const hub = { hubName: 'Depot Warsaw', hubLat: 52.2297, hubLng: 21.0122 }
  const made = await client.call('POST', '/auth/signup', {
    body: { name: 'Demo', email, password, organizationName: 'Demo fleet', ...hub },
  })
  if (made.status === 409) return undefined
  if (made.status >= 300) throw new Error(`the demo cannot sign up: ${made.json?.message}`)
  return made.json.token as string
}
