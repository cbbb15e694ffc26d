import { statfs } from 'node:fs/promises'
import { RUNS } from '../engines/clickhouse-sql/history-tables.ts'
import { STATUS_SQL } from '../engines/clickhouse-sql/runs.ts'
import type { HistoryReader } from '../engines/history-store.ts'
import { ACCESS_IDENTITIES, type AccessIdentityRow, ROLES_TABLE, USERS_TABLE } from '../features/identity/views.ts'
import type { TableStore } from '../engines/table-store.ts'
import type { UserCaller } from '../kernel/caller.ts'
import { Failure } from '../kernel/errors.ts'
import type { JsonSchema } from '../kernel/json.ts'
import { NO_ORGANIZATION } from '../kernel/table.ts'
import type { Lag } from '../kit/consumers/follower.ts'
import { envelope } from '../kit/http/page-members.ts'
import { route, type Route } from '../kit/http/route.ts'
import type { EngineHealth } from '../kit/operations/engine-health.ts'
import { worstByConsumer } from './control.ts'

export interface SystemServices {
  tables: Pick<TableStore, 'find' | 'get'>
  history: HistoryReader
  config: {
    dataPath: string
    staffDomains: readonly string[]
    logUrl: string
    tablesUrl: string
    historyUrl: string
    filesUrl: string
    roles: readonly string[]
  }
  health: Pick<EngineHealth, 'down'>
  lags(): Promise<Lag[]>
  failedReclaims(): Promise<number>
  version: string
  /** ms since the epoch. */
  startedAt: number
}

/** Lag from which a consumer is reported. */
const LAG_SECONDS_MAX = 30
const DISK_FREE_PART_MIN = 0.1
const DAY_MS = 86_400_000
const GIB = 1024 ** 3

const number = (description: string): JsonSchema => ({ type: 'number', description })
const STATUS: JsonSchema = {
  title: 'SystemStatus',
  type: 'object',
  properties: {
    isWell: { type: 'boolean', description: 'Whether nothing needs attention.' },
    findings: { type: 'array', items: { type: 'string' }, description: 'What needs attention, in words.' },
    version: { type: 'string' },
    startedAt: { type: 'string', format: 'date-time', description: 'When this process began.' },
    uptimeSeconds: number('Since then.'),
    roles: { type: 'array', items: { type: 'string' }, description: 'Of this process.' },
    engines: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string' },
          kind: { type: 'string', description: 'Scheme of its URL, such as `lmdb` or `esdb`.' },
          isUp: { type: 'boolean' },
        },
        required: ['name', 'kind', 'isUp'],
      },
    },
    consumers: {
      type: 'array',
      description: 'How far the consumers of this process are behind the log, all partitions of one together.',
      items: {
        type: 'object',
        properties: {
          consumer: { type: 'string' },
          events: number('Events that are not stored yet.'),
          seconds: number('Age of the oldest of them.'),
        },
        required: ['consumer', 'events', 'seconds'],
      },
    },
    disk: {
      type: 'object',
      description: 'The disk of the data folder of this process.',
      properties: { freeBytes: number('To this process.'), totalBytes: number('Of the disk.') },
      required: ['freeBytes', 'totalBytes'],
    },
    scavengesFailed: {
      type: ['integer', 'null'],
      description: 'Newest scavenges of the log in a row that did not complete; null: the log is down.',
    },
    deliveries: {
      type: ['object', 'null'],
      description:
        'Runs of automations that were owed in the last 24 hours, of the whole service; null: the history is down.',
      properties: {
        pending: number('Waiting for an attempt.'),
        succeeded: number('Done.'),
        dead: number('Given up after the last attempt.'),
        skipped: number('Not to be done.'),
      },
      required: ['pending', 'succeeded', 'dead', 'skipped'],
    },
  },
  required: [
    'isWell',
    'findings',
    'version',
    'startedAt',
    'uptimeSeconds',
    'roles',
    'engines',
    'consumers',
    'disk',
    'scavengesFailed',
    'deliveries',
  ],
}

export const systemRoute = (services: SystemServices): Route =>
  route({
    method: 'GET',
    path: '/system',
    operationId: 'readSystem',
    summary: 'How the service is: engines, lag, disk and deliveries that fail',
    description:
      'For organizations with an owner whose verified address belongs to `--staff`, and for clients on the machine of the service, with or without a token (a loopback address, no header of a proxy, a local `Host`).',
    tag: 'Operations',
    access: { permission: 'view/audit-log' },
    forMachine: true,
    answers: { 200: { description: 'How it is.', schema: envelope({ data: STATUS }) } },
    handler: async ({ caller, now }) => {
      // Without a caller it is this machine.
      if (caller !== undefined && !(await isOfStaff(services, caller as UserCaller)))
        throw new Failure('forbidden', { message: 'This is for the organization that operates the service.' })
      return { body: { data: await statusOf(services, now) }, headers: { 'cache-control': 'no-store' } }
    },
  })

const statusOf = async (services: SystemServices, now: number) => {
  const { config, health, version, startedAt } = services
  const down = await health.down()
  const engines = Object.entries({
    log: config.logUrl,
    tables: config.tablesUrl,
    history: config.historyUrl,
    files: config.filesUrl,
  }).map(([name, url]) => ({ name, kind: url.slice(0, url.indexOf(':')), isUp: !down.includes(name) }))
  const [consumers, disk, scavengesFailed, deliveries] = await Promise.all([
    unlessDown(async () => worstByConsumer(await services.lags()), []),
    diskOf(config.dataPath),
    unlessDown(() => services.failedReclaims(), null),
    unlessDown(() => deliveriesSince(services.history, now - DAY_MS), null),
  ])
  const findings = [
    ...engines.filter(({ isUp }) => !isUp).map(({ name }) => `The storage behind ${name} does not answer.`),
    ...consumers
      .filter(({ seconds }) => seconds > LAG_SECONDS_MAX)
      .map(({ consumer, events, seconds }) => `${consumer} is ${Math.round(seconds)} s (${events} events) behind.`),
    ...(disk.freeBytes < disk.totalBytes * DISK_FREE_PART_MIN
      ? [
          `The disk is nearly full: ${(disk.freeBytes / GIB).toFixed(1)} GiB of ${(disk.totalBytes / GIB).toFixed(1)} GiB are free.`,
        ]
      : []),
    ...(scavengesFailed !== null && scavengesFailed > 0
      ? [`${scavengesFailed} scavenges of the log in a row did not complete: what was erased is still on its disk.`]
      : []),
    ...(deliveries !== null && deliveries.dead > 0
      ? [`${deliveries.dead} runs of automations were given up in the last 24 hours.`]
      : []),
  ]
  const uptimeSeconds = Math.max(0, Math.round((now - startedAt) / 1000))
  return {
    isWell: findings.length === 0,
    findings,
    version,
    startedAt: new Date(startedAt).toISOString(),
    uptimeSeconds,
    roles: config.roles,
    engines,
    consumers,
    disk,
    scavengesFailed,
    deliveries,
  }
}

const diskOf = async (path: string): Promise<{ freeBytes: number; totalBytes: number }> => {
  const { bavail, blocks, bsize } = await statfs(path)
  return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
}

const deliveriesSince = async (history: HistoryReader, since: number) => {
  const found = await history.rows<{ status: string; runs: number }>(
    `SELECT ${STATUS_SQL} AS status, count() AS runs FROM (SELECT max(state) AS state FROM ${RUNS}
      WHERE createdAt >= fromUnixTimestamp64Milli({since:Int64}, 'UTC') GROUP BY organizationId, _id) GROUP BY status`,
    { since },
  )
  const counts = Object.fromEntries(found.map(({ status, runs }) => [status, runs]))
  const { pending = 0, succeeded = 0, dead = 0, skipped = 0 } = counts
  return { pending, succeeded, dead, skipped }
}

/** `otherwise` if an engine is down: its finding gives the reason. */
const unlessDown = async <Value>(ask: () => Promise<Value>, otherwise: Value): Promise<Value> => {
  try {
    return await ask()
  } catch (error) {
    if (error instanceof Failure && (error.code === 'engine_down' || error.code === 'overloaded')) return otherwise
    throw error
  }
}

/** Whether an active owner of the caller's organization has a verified address of staff. */
const isOfStaff = async (
  { tables, config: { staffDomains } }: Pick<SystemServices, 'tables' | 'config'>,
  { organizationId }: UserCaller,
): Promise<boolean> => {
  if (staffDomains.length === 0) return false
  const roles = await tables.find(ROLES_TABLE, organizationId, { limit: ROWS_MAX })
  const ownerRoles = roles.rows.filter(({ row }) => row.key === 'owner').map(({ id }) => id)
  if (ownerRoles.length === 0) return false
  const where = { roleId: ownerRoles, status: 'active' }
  const { rows } = await tables.find(USERS_TABLE, organizationId, { where, limit: ROWS_MAX })
  for (const { row } of rows) {
    const identity = await tables.get<AccessIdentityRow>(
      ACCESS_IDENTITIES.name,
      NO_ORGANIZATION,
      row.identityId as string,
    )
    const address = identity?.verifiedEmail ?? ''
    if (staffDomains.includes(address.slice(address.lastIndexOf('@') + 1).toLowerCase())) return true
  }
  return false
}

const ROWS_MAX = 1_000
