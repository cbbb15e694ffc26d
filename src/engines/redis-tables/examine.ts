import type { Examination, ExaminedSetting } from '../examination.ts'
import type { RedisConnection } from './connection.ts'

const SETTINGS: { name: string; good: RegExp; advice: string }[] = [
  {
    name: 'appendonly',
    good: /^yes$/,
    advice:
      'CONFIG SET appendonly yes, then CONFIG REWRITE: without it, the tables are empty after a restart and are rebuilt from the log',
  },
  {
    name: 'appendfsync',
    good: /^(always|everysec)$/,
    advice:
      'CONFIG SET appendfsync everysec (always, in a cluster), then CONFIG REWRITE: otherwise the system decides when writes reach the disk',
  },
  {
    name: 'maxmemory-policy',
    good: /^noeviction$/,
    advice: 'CONFIG SET maxmemory-policy noeviction, then CONFIG REWRITE: any other policy drops rows silently',
  },
]

/** Reports of every master; of several values the first that is not good. */
export const examineServers = async (connection: RedisConnection): Promise<Examination> => {
  const info = (await connection.everywhere(['INFO', 'server'])).map(String)
  const [time] = (await connection.everywhere(['TIME'])) as [unknown[]]
  const [seconds, micros] = time.map((part) => Number(String(part)))
  const settings = await Promise.all(SETTINGS.map((setting) => examined(connection, setting)))
  settings.push(...(await replication(connection)))
  return {
    version: [...new Set(info.map((text) => /redis_version:(\S+)/.exec(text)?.[1] ?? 'unknown'))].join(', '),
    now: seconds * 1000 + micros / 1000,
    settings,
  }
}

const WAIT_MS = 1_000

/** Whether a failover keeps the data that the service waits for (`WAIT`): idempotency keys, owners, checkpoints. */
const replication = async (connection: RedisConnection): Promise<ExaminedSetting[]> => {
  const infos = await connection.everywhere(['INFO', 'replication']).catch(() => [])
  const online = infos.map((info) => String(info).match(/state=online/g)?.length ?? 0)
  const followed = await connection.everywhere(['WAIT', '1', String(WAIT_MS)]).catch(() => undefined)
  const [fewest, confirming] = [Math.min(...online), Math.min(...(followed ?? []).map(Number))]
  const isAlone = online.length === 1 && fewest === 0
  const settings: ExaminedSetting[] = [
    {
      name: 'WAIT',
      value:
        followed === undefined || infos.length === 0
          ? undefined
          : isAlone
            ? 'not needed: there are no replicas'
            : `confirmed by ${confirming} of ${fewest} or more replicas of each master`,
      isGood: isAlone || confirming > 0,
      advice:
        'give each master a replica that keeps up: the data of a master that dies now is lost, and writes that wait for a replica fail (this check needs +wait and +info for the user)',
    },
  ]
  if (!isAlone)
    settings.push(
      await examined(connection, {
        name: 'min-replicas-to-write',
        good: /^[1-9]/,
        advice:
          'CONFIG SET min-replicas-to-write 1, then CONFIG REWRITE: otherwise, a master that is cut off from its replicas takes writes that a failover loses',
      }),
    )
  return settings
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
