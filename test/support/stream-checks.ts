import type { Test } from 'tap'
import { pointIdOf } from './point-id.ts'
import { askControl } from '../../src/cli/control-socket.ts'
import { obviousTransitions, realDay, tracksOf, type RealDay } from './real-day.ts'
import { type Answer, allPages, allRows, ask, call, type Json, signUp, until } from './service.ts'
import { openReceiver, type Receiver } from './webhook-receiver.ts'
import { whenUp } from './when-up.ts'

export interface Setting {
  token: string
  groupId: string
  ingestKey: string
}

/** An organization with the fences of the day, an ingest key, and a webhook for each direction. */
export const prepare = async (
  service: { url: string },
  token: string,
  day: RealDay,
  receiver: Receiver,
): Promise<Setting> => {
  const group = await ask(service, 'POST', '/geofence-group', { token, body: { name: 'Day' } })
  const imported = await ask(service, 'POST', `/geofences/import?geofenceGroupId=${group.data._id}&nameProperty=name`, {
    token,
    body: day.fences,
  })
  if (imported.data.created !== day.fences.features.length)
    throw new Error(`imported ${JSON.stringify(imported.data).slice(0, 300)}`)
  for (const event of ['onGeofenceEntry', 'onGeofenceLeave']) {
    const body = {
      name: event,
      event,
      automationType: 'webhook',
      automationDetails: { url: receiver.url },
      rules: { fields: { geofenceGroupId: group.data._id } },
    }
    const made = await ask(service, 'POST', '/automation', { token, body })
    receiver.secrets.set(made.data._id, made.data.automationDetails.secret)
  }
  const key = await ask(service, 'POST', '/ingest-key', { token, body: { name: 'gateway', autoCreate: true } })
  return { token, groupId: group.data._id, ingestKey: key.data.key }
}

export interface DayBegun extends Awaited<ReturnType<typeof signUp>> {
  day: RealDay
  receiver: Receiver
  setting: Setting
  /** A token of the owner's that was revoked. */
  revoked: string
}

/** A real day, who hears of it, and an owner with an organization that is prepared for it. */
export const beginDay = async (t: Test, service: { url: string }, fixes: number): Promise<DayBegun> => {
  const day = await realDay(t, fixes, Date.now())
  const receiver = await openReceiver(t)
  const owner = await signUp(service)
  const setting = await prepare(service, owner.token, day, receiver)
  const { email, password } = owner
  const revoked = (await ask(service, 'POST', '/auth/login', { body: { email, password } })).token
  await ask(service, 'POST', '/auth/logout', { token: revoked })
  return { ...owner, day, receiver, setting, revoked }
}

/** A token that was revoked stays so, also where an engine has come back just now. */
export const checkRevoked = async (t: Test, service: { url: string }, token: string): Promise<void> => {
  let answer: Answer | undefined
  await until('whose token it is to be known', async () => {
    answer = await call(service, 'GET', '/user', { token })
    return answer.status !== 503
  })
  t.equal(answer?.status, 401, 'a token that was revoked stays so')
}

/** Everything of the day came out as computed from its fixes. Answers how many deliveries were repeated. */
export const checkDay = async (
  t: Test,
  service: { url: string },
  { day, receiver, setting }: Pick<DayBegun, 'day' | 'receiver' | 'setting'>,
): Promise<number> => {
  const trackers = await checkHistory(t, service, setting, day)
  const transitions = await checkTransitions(t, service, setting, day, trackers)
  return checkDeliveries(t, receiver, transitions)
}

/** Projections of the service on this data folder, built anew from the log, are as they were. */
export const checkRebuilt = async (t: Test, dataFolder: string, names: readonly string[]): Promise<void> => {
  for (const name of names) {
    const answer = await askControl(dataFolder, { command: 'rebuild', name })
    const what = `${name} equals a fresh replay: ${answer?.error ?? 'rebuilt'}`
    const report = answer?.report as { differing: number; differences: unknown[] } | undefined
    t.same([answer?.ok, report?.differing, report?.differences], [true, 0, []], what)
  }
}

/** Every acknowledged point is in history exactly once, where it was. */
export const checkHistory = async (
  t: Test,
  service: { url: string },
  { token }: Setting,
  day: RealDay,
): Promise<Map<string, string>> => {
  const tracks = [...tracksOf(day.fixes)]
  let trackers = new Map<string, string>()
  // After a failover the lists come back from the log.
  await until('every tracker to be listed', async () => {
    const rows = await whenUp(() => allPages(service, '/trackers', token))
    trackers = new Map(rows.map((one) => [one.externalId as string, one._id as string]))
    return tracks.every(([externalId]) => trackers.has(externalId))
  })
  const expected = tracks.flatMap(([externalId, track]) =>
    track.map((fix) => `${pointIdOf(trackers.get(externalId), fix.recordedAt)} ${fix.lat} ${fix.lng}`),
  )
  let rows: Json[] = []
  await until(
    'history',
    async () => (rows = await whenUp(() => allRows(service, '/location-histories', token))).length >= expected.length,
  )
  const got = rows.map((row) => `${row._id} ${row.lat} ${row.lng}`)
  t.equal(got.length, expected.length, 'as many points in history as were acknowledged')
  t.same(difference(expected, got), [], 'every point is there, at its place')
  return trackers
}

/** The transitions equal the obvious computation. Answers their rows. */
export const checkTransitions = async (
  t: Test,
  service: { url: string },
  { token }: Setting,
  day: RealDay,
  trackers: Map<string, string>,
): Promise<Json[]> => {
  const expected = obviousTransitions(day)
  let rows: Json[] = []
  await until(
    'transitions',
    async () => (rows = await whenUp(() => allRows(service, '/geofence-events', token))).length >= expected.size,
  )
  const names = new Map([...trackers].map(([externalId, id]) => [id, externalId]))
  const fences = new Map((await whenUp(() => allPages(service, '/geofences', token))).map((one) => [one._id, one.name]))
  const got = rows.map(
    (row) => `${names.get(row.trackerId)}|${fences.get(row.geofenceId)}|${row.type}|${Date.parse(row.at)}`,
  )
  t.ok(expected.size > 100, `${expected.size} transitions are expected`)
  t.same(difference([...expected], got), [], 'no transition is missing')
  t.same(difference(got, [...expected]), [], 'no transition is invented')
  t.equal(new Set(rows.map((row) => row._id)).size, expected.size, 'each has an id of its own')
  return rows
}

/** Each transition reached the receiver, signed, under one id. Answers how many deliveries were repeats. */
export const checkDeliveries = async (t: Test, receiver: Receiver, transitions: Json[]): Promise<number> => {
  const nameOf = (type: string, tracker: string, fence: string, at: string): string =>
    `${type}|${tracker}|${fence}|${Date.parse(at)}`
  const owed = new Set(
    transitions.map((row) =>
      nameOf(row.type === 'entry' ? 'onGeofenceEntry' : 'onGeofenceLeave', row.trackerId, row.geofenceId, row.at),
    ),
  )
  const idsOf = (): Map<string, Set<string>> => {
    const ids = new Map<string, Set<string>>()
    for (const { id, body } of receiver.deliveries) {
      const name = nameOf(body.type, body.data.tracker._id, body.data.geofence._id, body.data.point.recordedAt)
      ids.set(name, (ids.get(name) ?? new Set()).add(id))
    }
    return ids
  }
  await until('webhooks', () => idsOf().size >= owed.size)
  const ids = idsOf()
  t.same(difference([...owed], [...ids.keys()]), [], 'each transition was delivered')
  t.same(difference([...ids.keys()], [...owed]), [], 'nothing else was delivered')
  t.ok(
    [...ids.values()].every((set) => set.size === 1),
    'each under exactly one webhook-id',
  )
  t.same(receiver.bad, [], 'each correctly signed')
  return receiver.deliveries.length - owed.size
}

const difference = (a: readonly string[], b: readonly string[]): string[] => {
  const other = new Set(b)
  return a.filter((one) => !other.has(one)).slice(0, 5)
}
