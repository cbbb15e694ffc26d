import type { Examination, ExaminedSetting } from '../examination.ts'
import type { RedisConnection } from './connection.ts'

const SETTINGS: { name: string; good: RegExp; advice: string }[] = [
  {
    name: 'appendonly',
    good: /^yes$/,
    advice: 'CONFIG SET appendonly yes: without it a restart empties the tables, and they are built anew from the log',
  },
  {
    name: 'appendfsync',
    good: /^(always|everysec)$/,
    advice: 'CONFIG SET appendfsync everysec: otherwise the system decides when writes reach the disk',
  },
  {
    name: 'maxmemory-policy',
    good: /^noeviction$/,
    advice: 'CONFIG SET maxmemory-policy noeviction, and in redis.conf',
  },
]

/** What every master says; of several values the first that is not good. */
export const examineServers = async (connection: RedisConnection): Promise<Examination> => {
  const info = (await connection.everywhere(['INFO', 'server'])).map(String)
  const [time] = (await connection.everywhere(['TIME'])) as [unknown[]]
  const [seconds, micros] = time.map((part) => Number(String(part)))
  const settings = await Promise.all(SETTINGS.map((setting) => examined(connection, setting)))
  return {
    version: [...new Set(info.map((text) => /redis_version:(\S+)/.exec(text)?.[1] ?? 'unknown'))].join(', '),
    now: seconds * 1000 + micros / 1000,
    settings,
  }
}

const examined = async (
  connection: RedisConnection,
  { name, good, advice }: (typeof SETTINGS)[number],
): Promise<ExaminedSetting> => {
  const answers = await connection.everywhere(['CONFIG', 'GET', name]).catch(() => [])
  const values = answers.map(secondOf)
  const value = values.find((one) => one !== undefined && !good.test(one)) ?? values[0]
  return { name, value, isGood: value === undefined || good.test(value), advice }
}

/** A map or a list of names and values, by the protocol's version. */
const secondOf = (answer: unknown): string | undefined => {
  const parts = Array.isArray(answer)
    ? answer
    : answer instanceof Map
      ? [...answer].flat()
      : Object.entries((answer ?? {}) as object).flat()
  return parts[1] === undefined ? undefined : String(parts[1])
}
