import { readFileSync } from 'node:fs'

/** Parts of `--tables redis://…`. */
export interface RedisUrl {
  /** The first address and those of `also`: servers of a cluster, or sentinels; the first to answer lists the rest. */
  addresses: { host: string; port: number }[]
  username?: string
  password?: string
  database: number
  /** With TLS; the certificate of a private authority where `ca` names a file. */
  tls?: { ca?: string }
  /** Prefix of all keys, so that installations can share a server. */
  prefix: string
  /** Name of the master that sentinels watch. */
  sentinel?: string
}

const PARAMETERS = ['prefix', 'sentinel', 'also', 'ca']
const PREFIX = /^[A-Za-z0-9._:-]{1,50}$/
const PORT = 6379
const SENTINEL_PORT = 26379

/** @throws Error with one sentence that names the fault */
export const readRedisUrl = (text: string): RedisUrl => {
  const url = new URL(text)
  const { searchParams: given } = url
  for (const name of given.keys())
    if (!PARAMETERS.includes(name))
      throw new Error(`--tables has no parameter ${name}; there are ${PARAMETERS.join(', ')}`)
  const prefix = given.get('prefix') ?? 'wm'
  if (!PREFIX.test(prefix)) throw new Error('--tables: prefix takes 1 to 50 letters, digits, and . _ : -')
  const database = url.pathname.length > 1 ? Number(url.pathname.slice(1)) : 0
  if (!Number.isInteger(database) || database < 0)
    throw new Error(`--tables: ${url.pathname} is not the number of a database`)
  const sentinel = given.get('sentinel') ?? undefined
  const isTls = url.protocol === 'rediss:'
  const ca = given.get('ca')
  if (ca !== null && !isTls) throw new Error('--tables: ca is for rediss://')
  const standard = sentinel === undefined ? PORT : SENTINEL_PORT
  return {
    addresses: [url.host, ...(given.get('also')?.split(',') ?? [])].map((address) => addressOf(address, standard)),
    ...(url.username !== '' && { username: decodeURIComponent(url.username) }),
    ...(url.password !== '' && { password: decodeURIComponent(url.password) }),
    database,
    ...(isTls && { tls: ca === null ? {} : { ca: certificateIn(ca) } }),
    prefix,
    ...(sentinel !== undefined && { sentinel }),
  }
}

const addressOf = (text: string, standard: number): { host: string; port: number } => {
  const [, host, port] = /^(\[[^\]]+\]|[^:[\]]+)(?::(\d{1,5}))?$/.exec(text) ?? []
  if (host === undefined) throw new Error(`--tables: ${text} is not an address, such as redis-2.example:6379`)
  return { host: host.replace(/^\[|\]$/g, ''), port: port === undefined ? standard : Number(port) }
}

const certificateIn = (path: string): string => {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    throw new Error(`--tables: ca cannot be read: ${(error as Error).message}`)
  }
}
