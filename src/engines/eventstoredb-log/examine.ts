import type { Examination, ExaminedSetting } from '../examination.ts'
import type { Credentials } from '@eventstore/db-client'
import type { Connection } from './connection.ts'
import { mayScavenge } from './scavenge.ts'

const DEADLINE_MS = 5_000

interface ServerOption {
  name: string
  value: unknown
}

const OPTIONS = [
  {
    name: 'MemDb',
    advice: 'restart the server without --mem-db: it keeps everything in memory and forgets it when it ends',
  },
  {
    name: 'UnsafeDisableFlushToDisk',
    advice: 'restart the server without --unsafe-disable-flush-to-disk: a power loss takes what it acknowledged',
  },
]

/** What the server's own page of options says; it answers operators only, on its HTTP port. */
export const examineServer = async (connection: Connection): Promise<Examination> => {
  const { url, version, credentials } = connection
  const options = await optionsOf(url, credentials)
  const settings = OPTIONS.map(({ name, advice }): ExaminedSetting => {
    const option = options?.find((one) => one.name.replaceAll(/[ -]/g, '').toLowerCase() === name.toLowerCase())
    const value = option === undefined ? undefined : String(option.value)
    return { name, value, isGood: value?.toLowerCase() !== 'true', advice }
  })
  return { version, settings: [...settings, await scavenging(connection)] }
}

const scavenging = async (connection: Connection): Promise<ExaminedSetting> => {
  const isAllowed = await mayScavenge(connection).catch(() => undefined)
  return {
    name: 'the right to start scavenges',
    value: isAllowed === undefined ? undefined : isAllowed ? 'granted' : 'missing',
    isGood: isAllowed === true,
    advice:
      'put the user into the group $ops, or have each node scavenged on a schedule (POST /admin/scavenge): until then what was truncated or erased stays on the disk',
  }
}

/** Of the node that the URL names first; undefined where it does not tell. */
const optionsOf = async (url: string, { username, password }: Credentials): Promise<ServerOption[] | undefined> => {
  const node = /^[a-z+]+:\/\/(?:[^/@]*@)?([^/?,]+)/.exec(url)?.[1]
  const scheme = /[?&]tls=false\b/i.test(url) ? 'http' : 'https'
  const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
  try {
    const answer = await fetch(`${scheme}://${node}/info/options`, {
      headers: { accept: 'application/json', ...(scheme === 'https' && { authorization }) },
      signal: AbortSignal.timeout(DEADLINE_MS),
    })
    const options = (await answer.json()) as ServerOption[]
    return answer.ok && Array.isArray(options) ? options : undefined
  } catch {
    // A load balancer in between, a certificate of its own: then nobody can tell from here.
    return undefined
  }
}
