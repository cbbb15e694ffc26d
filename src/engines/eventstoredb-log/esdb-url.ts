import type { Credentials } from '@eventstore/db-client'

/** Percent-encoded. */
const PATH = /^(?:[^%]|%[0-9a-f]{2})+$/i

/**
 * Parameters after the `?` of `--log esdb://…`, and their values. The client package ignores any other name and writes
 * the whole URL, password included, to standard error. Missing on purpose: parameters that break a promise of the log
 * (`throwOnAppendFailure`, `defaultDeadline`) or are not supported by the package (`tlsVerifyCert`).
 */
const PARAMETERS: { [name: string]: RegExp } = {
  tls: /^(true|false)$/,
  tlsCAFile: PATH,
  userCertFile: PATH,
  userKeyFile: PATH,
  keepAliveInterval: /^-?\d+$/,
  keepAliveTimeout: /^-?\d+$/,
  gossipTimeout: /^\d+$/,
  discoveryInterval: /^\d+$/,
  maxDiscoverAttempts: /^\d+$/,
  nodePreference: /^leader$/i,
  connectionName: /./,
}
/** The package reads names in any case, with `_` and `-` anywhere. */
const flat = (name: string): string => name.toLowerCase().replace(/[_-]/g, '')
const NAMES = new Map(Object.keys(PARAMETERS).map((name) => [flat(name), name]))

const USER = /^(?:[^:@/?#%]|%[0-9a-f]{2})+:(?:[^:@/?#%]|%[0-9a-f]{2})+$/i
const PORT = 2113

/** Parts of a connection string that are needed beside the client package. */
export interface EsdbUrl {
  /** Sent with each call; an insecure connection ignores them. */
  credentials: Credentials
  isTls: boolean
  /** Certificate of a private authority. */
  caFile?: string
  /** `host:port` of the first node. */
  firstNode: string
}

/** @throws Error with one sentence that names the fault, without the password */
export const readEsdbUrl = (url: string): EsdbUrl => {
  // Up to the last @: a password that should have been encoded is refused, and no part of it taken for a host.
  const [, user, rest = ''] = /^[a-z+]+:\/\/(?:([^/?]*)@)?(.*)$/.exec(url) ?? []
  if (user !== undefined && !USER.test(user))
    throw new Error('--log must have user:password before the @, with special characters percent-encoded (@ as %40)')
  const [, host, port = PORT] = /^([^/?,:]+)(?::(\d+))?(?=[/?,]|$)/.exec(rest) ?? []
  if (host === undefined) throw new Error('--log must name a host, and its port as a number: esdb://host:2113')
  const given = parametersOf(rest)
  const isTls = given.get('tls') !== 'false'
  if (user === undefined && isTls) throw new Error('--log uses TLS and so needs a user: esdb://user:password@host:2113')
  const [username, password] = (user ?? 'waymark:waymark').split(':').map(decodeURIComponent)
  const caFile = given.get('tlsCAFile')
  return {
    credentials: { username, password },
    isTls,
    ...(caFile !== undefined && { caFile: decodeURIComponent(caFile) }),
    firstNode: `${host}:${port}`,
  }
}

const parametersOf = (rest: string): Map<string, string> => {
  const [, query = ''] = /\?(.*)$/.exec(rest) ?? []
  const given = new Map<string, string>()
  for (const pair of query.split('&').filter(Boolean)) {
    const [written, value = ''] = pair.split('=')
    const name = NAMES.get(flat(written))
    if (name === undefined)
      throw new Error(
        `--log has no parameter ${/^[\w-]+$/.test(written) ? written : 'of that name'}; there are ${Object.keys(PARAMETERS).join(', ')}`,
      )
    if (!PARAMETERS[name].test(value)) throw new Error(`--log: ${name} must be ${EXPECTED[name] ?? 'a whole number'}`)
    given.set(name, value)
  }
  return given
}

const EXPECTED: { [name: string]: string } = {
  tls: 'true or false',
  tlsCAFile: 'the path of a file, percent-encoded',
  userCertFile: 'the path of a file, percent-encoded',
  userKeyFile: 'the path of a file, percent-encoded',
  nodePreference: 'leader, or left out: the leader answers everything',
  connectionName: 'a name',
}
