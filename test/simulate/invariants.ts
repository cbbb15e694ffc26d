import { isDeepStrictEqual } from 'node:util'
import { TRACKER_DELETED } from '../../src/features/locations/events.ts'
import { LATEST_POSITIONS } from '../../src/features/locations/views.ts'
import { NOTIFICATIONS, type NotificationRow } from '../../src/features/notifications/views.ts'
import { DECIDED, type Decided, transitionStream } from '../../src/features/transitions/events.ts'
import { TRACKER } from '../../src/features/trackers/events.ts'
import { decodeJson } from '../../src/kernel/event.ts'
import { idOfStream } from '../../src/kit/commands/declared-event.ts'
import type { Projection, Rows } from '../../src/kit/consumers/projection.ts'
import { PROJECTIONS } from '../../src/product-parts.ts'
import { exportFaults } from './exports.ts'
import { DUE_MS, FENCES, FLOWS, GOING_ROLE, HEIR_ROLE, ORGANIZATION, USERS } from './fleet.ts'
import { PARTITIONS, type World } from './host.ts'
import type { MemoryLog } from './memory-log.ts'
import { MemoryRows } from './memory-rows.ts'
import { type Expected, expectedOf } from './model.ts'
import type { Told } from './told.ts'
import { watcherFaults } from './told-events.ts'
import type { Watcher } from './watchers.ts'

/** What is not as it must be once everything has settled, a line for each kind; the numbers are those of architecture. */
export const violations = async (world: World, told: Told, watchers: readonly Watcher[]): Promise<string[]> => {
  const expected = expectedOf(world.log, PARTITIONS)
  const decided = decidedOf(world)
  return [
    ...pointFaults(world, told, expected),
    ...transitionFaults(expected, decided),
    ...deliveryFaults(world, decided),
    ...commandFaults(world, told),
    ...deletionFaults(world),
    ...taskFaults(world),
    ...roleFaults(world, told),
    ...exportFaults(world, told),
    ...watcherFaults(world, watchers, expected),
    ...(await replayFaults(world)),
  ]
}

interface DecidedTransition {
  _id: string
  key: string
}

/** `<event> <trip>` of every start and finish of a trip that was decided. */
const tripsOf = ({ log }: World): string[] =>
  log.events.flatMap(({ stream, type, data }) =>
    type === DECIDED && stream.startsWith('transitions-')
      ? decodeJson<Decided>(data).decisions.flatMap(({ kind, _id }) =>
          kind === 'transition' ? [] : [`${kind === 'tripStarted' ? 'onStartTrip' : 'onFinishTrip'} ${_id}`],
        )
      : [],
  )

const decidedOf = ({ log }: World): DecidedTransition[] => {
  const found: DecidedTransition[] = []
  for (let partition = 0; partition < PARTITIONS; partition++)
    for (const { type, data } of log.read(transitionStream(partition), 0, Number.MAX_SAFE_INTEGER)) {
      if (type !== DECIDED) continue
      const { sourceRevision, decisions } = decodeJson<Decided>(data)
      for (const decision of decisions)
        if (decision.kind === 'transition') {
          const { _id, trackerId, geofenceId, type: kind, point } = decision
          const key = `${partition} ${sourceRevision} ${trackerId} ${FENCES.indexOf(geofenceId)} ${kind} ${point.recordedAt}`
          found.push({ _id, key })
        }
    }
  return found
}

/** 1 and 2: acknowledged points are in the log, in the history and in the live view. */
const pointFaults = ({ history, rows }: World, told: Told, { points, latest }: Expected): string[] => [
  ...missing('acknowledged points are not in the log', told.points, points),
  ...missing('points of the log are not in the history', points, history.points),
  ...missing('points of the history are not in the log', history.points, points),
  ...missing(
    'positions are of trackers without points',
    rows.scan(LATEST_POSITIONS.name, ORGANIZATION).map(({ id }) => id),
    new Set(latest.keys()),
  ),
  ...[...latest].flatMap(([trackerId, recordedAt]) => {
    const row = rows.get(LATEST_POSITIONS.name, ORGANIZATION, trackerId)
    return row?.recordedAt === recordedAt
      ? []
      : [`the position of ${trackerId} is of ${row?.recordedAt}, not of ${recordedAt}`]
  }),
]

/** 2 and 3: transitions are those that the log means, each once. */
const transitionFaults = ({ transitions }: Expected, decided: readonly DecidedTransition[]): string[] => {
  const keys = decided.map(({ key }) => key)
  return [
    ...missing('transitions were not decided', transitions, new Set(keys)),
    ...missing('transitions were decided that the log does not mean', keys, new Set(transitions)),
    ...(new Set(keys).size < keys.length ? [`${keys.length - new Set(keys).size} transitions were decided twice`] : []),
  ]
}

/** 3: each transition is in the history; each of them, of the trips and of the tasks was delivered under one id. */
const deliveryFaults = (world: World, decided: readonly DecidedTransition[]): string[] => {
  const { history, receiver } = world
  const ids = new Set(decided.map(({ _id }) => _id))
  const subjects = new Set([...ids, ...tripsOf(world), ...tasksOf(world).map(({ id }) => id)])
  const delivered = new Map<string, Set<string>>()
  for (const [webhookId, { subjects: told, answered }] of receiver.deliveries)
    for (const one of told) {
      const known = delivered.get(one) ?? new Set()
      if (answered > 0) known.add(webhookId)
      delivered.set(one, known)
    }
  const heard = new Set([...delivered].flatMap(([id, webhooks]) => (webhooks.size > 0 ? [id] : [])))
  const twice = [...delivered.values()].filter((webhooks) => webhooks.size > 1).length
  return [
    ...missing('transitions are not in the history', ids, history.transitions),
    ...missing('transitions of the history are not in the log', history.transitions, ids),
    ...missing('transitions, trips and tasks were not delivered', subjects, heard),
    ...missing('deliveries are of nothing', delivered.keys(), subjects),
    ...(twice > 0 ? [`${twice} were delivered under several ids`] : []),
  ]
}

/** 10: each due task was made once, the automation made one for each, and each has one notification. */
const taskFaults = (world: World): string[] => {
  const made = tasksOf(world)
  const wrong = FLOWS.flatMap((flowId) => {
    const count = made.filter((task) => task.flowId === flowId).length
    return count === DUE_MS.length ? [] : [`${count} tasks of flow ${flowId} were made, not ${DUE_MS.length}`]
  })
  const notified = world.rows.scan(NOTIFICATIONS.name, ORGANIZATION).map(({ row }) => (row as NotificationRow).about.id)
  return [
    ...wrong,
    ...missing(
      'tasks have no notification',
      made.map(({ id }) => id),
      new Set(notified),
    ),
    ...(new Set(notified).size < notified.length ? ['a task has two notifications'] : []),
  ]
}

const tasksOf = ({ log }: World): { id: string; flowId: unknown }[] =>
  log.events.flatMap(({ type, stream, data }) =>
    type === 'taskCreated'
      ? [{ id: idOfStream(stream), flowId: decodeJson<{ values: { flowId: string } }>(data).values.flowId }]
      : [],
  )

/** 10: what was acknowledged is there, and a name is one role's. */
const commandFaults = ({ rows, log }: World, told: Told): string[] => {
  const roles = rows.scan('roles', ORGANIZATION)
  const names = roles.map(({ row }) => String(row.name))
  return [
    ...missing(
      'roles that were acknowledged are not in the table',
      told.roles.keys(),
      new Set(roles.map(({ id }) => id)),
    ),
    ...(new Set(names).size < names.length ? [`roles share names: ${names.sort().join(', ')}`] : []),
    ...editFaults(log, told),
  ]
}

/** 10: a role that was deleted is nobody's, and its heir is the role of those who had it. */
const roleFaults = ({ log, rows }: World, { isRoleReplaced }: Told): string[] => {
  const isDeleted = log.events.some(({ stream, type }) => stream === `role-${GOING_ROLE}` && type === 'roleDeleted')
  const roleIds = USERS.map((id) => rows.get('users', ORGANIZATION, id)?.roleId)
  const wanted = isDeleted ? HEIR_ROLE : undefined
  return [
    ...(isRoleReplaced && !isDeleted ? ['a role whose deletion was acknowledged is there'] : []),
    ...(wanted !== undefined && roleIds.some((id) => id !== wanted)
      ? [`a deleted role is had: ${roleIds.join()}`]
      : []),
  ]
}

/** 3: each deletion of a tracker is told to its partition once. */
const deletionFaults = ({ log }: World): string[] => {
  const deleted = log.events.filter(({ type }) => type === TRACKER.deleted).map(({ id }) => id)
  const causes = log.events.flatMap(({ type, metadata }) =>
    type === TRACKER_DELETED ? [String(metadata.$causationId)] : [],
  )
  return [
    ...missing('deletions were not announced', deleted, new Set(causes)),
    ...(new Set(causes).size < causes.length ? ['a deletion was announced twice'] : []),
  ]
}

/** Each edit that was acknowledged stands once, where it was said to stand; one that was refused stands nowhere. */
const editFaults = (log: MemoryLog, { edits, refused }: Told): string[] => {
  const faults: string[] = []
  const standsAt = (stream: string, id: string): number[] =>
    log.read(stream, 0, Number.MAX_SAFE_INTEGER).flatMap((event) => (event.id === id ? [event.revision] : []))
  for (const [id, { stream, revision }] of edits) {
    const places = standsAt(stream, id)
    if (places.length !== 1 || places[0] !== revision)
      faults.push(`an edit of ${stream} that was acknowledged at ${revision} stands at ${places.join() || 'no place'}`)
  }
  for (const [id, stream] of refused)
    if (standsAt(stream, id).length > 0) faults.push(`an edit of ${stream} that was refused is in the log`)
  return faults
}

/** 6: the tables are what the log says when it is read anew. */
const replayFaults = async (world: World): Promise<string[]> => {
  const faults: string[] = []
  for (const projection of PROJECTIONS) {
    const replayed = await replay(world, projection)
    for (const { name } of projection.tables) {
      const [stored, anew] = [world.rows, replayed].map((rows) => new Map(rows.scanAll(name).map(keyed)))
      for (const key of new Set([...stored.keys(), ...anew.keys()]))
        if (!isDeepStrictEqual(stored.get(key), anew.get(key)))
          faults.push(`${name} ${key}: ${JSON.stringify(stored.get(key))} replays as ${JSON.stringify(anew.get(key))}`)
    }
  }
  return faults.slice(0, 3)
}

const keyed = ({ scope, id, row }: { scope: string; id: string; row: object }): [string, object] => [
  `${scope} ${id}`,
  row,
]

const replay = async ({ log }: World, { tables, prefixes, apply, inputs }: Projection): Promise<MemoryRows> => {
  const replayed = new MemoryRows(() => 0)
  for (const table of tables) replayed.declare(table)
  const rows: Rows = {
    get: async (table, scope, id) => replayed.get(table, scope, id) as never,
    findBy: async (table, scope, field, value, limit = Number.MAX_SAFE_INTEGER) =>
      replayed.find(table, scope, { where: { [field]: value }, limit }).rows as never,
    put: (table, scope, id, row) => replayed.storePlace('', [{ table, scope, id, row: { ...row } }]),
    delete: (table, scope, id) => replayed.storePlace('', [{ table, scope, id, row: null }]),
  }
  for (const event of log.events)
    if (inputs.includes(event.type) && prefixes.some((prefix) => event.stream.startsWith(prefix)))
      await apply(event, rows)
  return replayed
}

const missing = (what: string, wanted: Iterable<string>, there: ReadonlySet<string>): string[] => {
  const lacking = [...wanted].filter((one) => !there.has(one))
  return lacking.length === 0 ? [] : [`${lacking.length} ${what}: ${lacking.slice(0, 3).join('; ')}`]
}
