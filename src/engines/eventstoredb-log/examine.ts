import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { get, type IncomingMessage } from 'node:http'
import { get as getWithTls } from 'node:https'
import { json } from 'node:stream/consumers'
import type { Examination, ExaminedSetting } from '../examination.ts'
import type { Connection } from './connection.ts'
import { readEsdbUrl } from './esdb-url.ts'
import { lastScavenges, mayScavenge } from './scavenge.ts'

const DEADLINE_MS = 5_000

interface ServerOption {
  name: string
  value: unknown
}

const OPTIONS = [
  {
    name: 'MemDb',
    advice: 'restart the server without --mem-db: with it, everything is only in memory and lost when the server ends',
  },
  {
    name: 'UnsafeDisableFlushToDisk',
    advice:
      'restart the server without --unsafe-disable-flush-to-disk: with it, a power failure loses what was acknowledged',
  },
]

/** Settings from the server's own page of options; it answers only operators, on its HTTP port. */
export const examineServer = async (connection: Connection): Promise<Examination> => {
  const { url, version } = connection
  const options = await optionsOf(url)
  const settings = OPTIONS.map(({ name, advice }): ExaminedSetting => {
    const option = options?.find((one) => one.name.replaceAll(/[ -]/g, '').toLowerCase() === name.toLowerCase())
    const value = option === undefined ? undefined : String(option.value)
    return { name, value, isGood: value?.toLowerCase() !== 'true', advice }
  })
  return { version, settings: [...settings, await scavenging(connection), ...(await failedScavenges(connection))] }
}

const scavenging = async (connection: Connection): Promise<ExaminedSetting> => {
  const isAllowed = await mayScavenge(connection).catch(() => undefined)
  return {
    name: 'the right to start scavenges',
    value: isAllowed === undefined ? undefined : isAllowed ? 'granted' : 'missing',
    isGood: isAllowed === true,
    advice:
      'add the user to the group $ops, or schedule scavenges of each node (POST /admin/scavenge): until then, what was truncated or erased stays on the disk',
  }
}

/** Reported only if the last scavenge failed. */
const failedScavenges = async (connection: Connection): Promise<ExaminedSetting[]> => {
  const { failures } = await lastScavenges(connection).catch(() => ({ failures: 0 }))
  if (failures === 0) return []
  return [
    {
      name: 'the last scavenge',
      value: `not completed (${failures} in a row)`,
      isGood: false,
      advice:
        'see $scavenges and the log of the server for the reason (a restart, or a full disk); it is started again by itself, and until it completes, what was erased stays on the disk',
    },
  ]
}

/** Options of the first node in the URL; undefined where it does not answer. */
const optionsOf = async (url: string): Promise<ServerOption[] | undefined> => {
  const { credentials, isTls, caFile, firstNode } = readEsdbUrl(url)
  const { username, password } = credentials
  const headers = { accept: 'application/json', ...(isTls && { authorization: basic(username, password) }) }
  try {
    const address = `${isTls ? 'https' : 'http'}://${firstNode}/info/options`
    const signal = AbortSignal.timeout(DEADLINE_MS)
    const ca = caFile === undefined ? undefined : readFileSync(caFile)
    const asked = (isTls ? getWithTls : get)(address, { headers, signal, ...(ca && { ca }) })
    const [answer] = (await once(asked, 'response')) as [IncomingMessage]
    const options = (await json(answer)) as ServerOption[]
    return answer.statusCode === 200 && Array.isArray(options) ? options : undefined
  } catch {
    // A load balancer in between, or no HTTP: then it cannot be known here.
    return undefined
  }
}

const basic = (username: string, password: string): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
