import { test, type Test } from 'tap'
import { openApp } from '../../src/app.ts'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { readConfig } from '../../src/config.ts'
import { type Role, ROLES } from '../../src/config-flags.ts'
import { RUNS_OWED, runIdOf, type RunsOwed, runsStream } from '../../src/features/automations/events.ts'
import { DECIDED, type Decided, transitionStream } from '../../src/features/transitions/events.ts'
import { factOf } from '../../src/kernel/event.ts'
import { type Engines, openEngines, type Node } from '../support/divided-service.ts'
import { folderOf } from '../support/folder-of.ts'
import { keepErrors } from '../support/open-services.ts'
import { openSocket } from '../support/open-socket.ts'
import { realDay, tracksOf, type RealDay } from '../support/real-day.ts'
import { ask, call, type Json, signUp, until } from '../support/service.ts'
import { checkDeliveries, checkHistory, checkTransitions, prepare, type Setting } from '../support/stream-checks.ts'
import { watchPositions } from '../support/watch-positions.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

const FIXES = 600
const FRAME = 8

/** Which roles one of two processes has; the other one has the rest. */
const DIVISIONS: readonly Role[][] = [
  ['api', 'live', 'projector', 'jobs'],
  ['api', 'ingress', 'dispatcher'],
]

const others = (roles: readonly Role[]): Role[] => ROLES.filter((role) => !roles.includes(role))

/** Sends frames to these nodes in turn, each acknowledged before the next; `between` is called before each. */
const send = async (
  nodes: () => readonly Node[],
  ingestKey: string,
  fixes: RealDay['fixes'],
  between: (frame: number) => Promise<void> | void = () => undefined,
): Promise<void> => {
  for (let at = 0, frame = 0; at < fixes.length; at += FRAME, frame++) {
    await between(frame)
    const doors = nodes()
    const gateway = await IngestClient.connect(doors[frame % doors.length].url, ingestKey)
    await gateway.send(fixes.slice(at, at + FRAME))
    await gateway.drained()
    gateway.close()
    if (gateway.rejected.length > 0) throw new Error(`refused: ${JSON.stringify(gateway.rejected)}`)
  }
}

/** What one process does is heard by the other: a deleted tracker, a key that is another, a user who is gone. */
const checkHearing = async (t: Test, office: Node, door: Node): Promise<void> => {
  const { token } = await signUp(office, 'Hearing')
  const made = (await ask(office, 'POST', '/tracker', { token, body: { name: 'Van', kind: 'device' } })).data
  const ingest = await openSocket(door, 'ingest', made.deviceKey)
  await ingest.heard(({ type }) => type === 'ready')
  const point = { recordedAt: Date.now(), lat: 52, lng: 21 }
  ingest.send({ type: 'points', seq: 1, points: [point] })
  await ingest.heard(({ type }) => type === 'ack')
  const positions = async (): Promise<Json[]> => (await ask(office, 'GET', '/live-positions', { token })).data
  await until('its position', async () => (await positions()).length === 1)
  const viewer = await openSocket(door, 'ingest', token)
  await viewer.heard(({ type }) => type === 'ready')
  const gone = await call(office, 'DELETE', `/tracker/${made._id}`, { token })
  t.equal(gone.status, 200)
  if (gone.headers['waymark-pending'] === undefined)
    t.same(
      await positions(),
      [],
      'an answer that did not give up waiting comes when all have forgotten it, wherever they run',
    )
  await until('its position to be forgotten', async () => (await positions()).length === 0)
  t.ok([4401, 4403].includes(await ingest.closed), 'its socket at the other process ends')
  await ask(office, 'POST', '/auth/logout', { token })
  t.ok([4401, 4403].includes(await viewer.closed), 'so does one whose token was revoked')
  t.equal((await call(door, 'GET', '/user', { token })).status === 200, false)
}

/** What is done once is asked for by the one and done by the other. */
const checkTasks = async (t: Test, node: Node): Promise<void> => {
  for (const name of ['directory', 'latest-position', 'location-history', 'transitions', 'matcher'])
    t.match(await node.control({ command: 'rebuild', name }), { differing: 0 }, `${name} is rebuilt as it was`)
  await t.rejects(node.control({ command: 'forget', name: 'latest-position' }), /exists and would lose points/)
  t.same(await node.control({ command: 'sweep' }), [])
}

/** What the log has of decisions and of runs, in order: nothing may stand there twice, whoever wrote it. */
const checkLog = async (t: Test, { log, partitions }: Engines): Promise<void> => {
  const events = async (stream: string) => (await log.read(stream, 0, 100_000)).map(factOf)
  for (let partition = 0; partition < partitions; partition++) {
    const decided = (await events(transitionStream(partition))).filter(({ type }) => type === DECIDED)
    const places = decided.flatMap(({ data }) => {
      const { sourceRevision, ordinal, decisions } = data as Decided
      return decisions.map((_, i) => sourceRevision * 1_000_000 + ordinal + i)
    })
    const inOrder = [...new Set(places)].sort((a, b) => a - b)
    t.same(places, inOrder, `${places.length} decisions of partition ${partition}, each once and in order`)
    const owed = (await events(runsStream(partition))).filter(({ type }) => type === RUNS_OWED)
    const runIds = owed.flatMap(({ data }) =>
      (data as RunsOwed).owed.flatMap(({ trigger, runs }) => runs.map((run) => runIdOf(trigger, run.automationId))),
    )
    t.equal(new Set(runIds).size, runIds.length, 'each run is owed once')
  }
}

test('divided between two processes in several ways, and with partitions to and fro, the stream keeps its promises', {
  timeout: 600_000,
}, async (t) => {
  const engines = await openEngines(folderOf(t))
  const open = new Set<Node>()
  t.teardown(async () => {
    for (const node of open) await node.close()
    await engines.close()
  })
  const node = async (...args: Parameters<typeof engines.open>): Promise<Node> => {
    const opened = await engines.open(...args)
    open.add(opened)
    return opened
  }
  const day = await realDay(t, FIXES, Date.now())
  const receiver = await openReceiver(t)
  const third = Math.ceil(day.fixes.length / 3 / FRAME) * FRAME
  let setting: Setting | undefined
  let token = ''

  for (const [i, roles] of DIVISIONS.entries()) {
    const office = await node('office', roles)
    const rest = await node('rest', others(roles))
    if (setting === undefined) {
      token = (await signUp(office)).token
      setting = await prepare(office, token, day, receiver)
    }
    const door = roles.includes('ingress') ? office : rest
    await send(() => [door], setting.ingestKey, day.fixes.slice(i * third, (i + 1) * third))
    await checkHearing(t, office, door)
    await checkTasks(t, office)
    await Promise.all([office.close(), rest.close()])
  }

  const one = await node('one')
  let other = await node('other')
  let doors = [one, other]
  const watching = [await watchPositions(one, token)]
  const has = async (node: Node): Promise<number> => {
    const held = (await engines.tables.get<Json>('leases', 'leases', 'held'))?.owners ?? {}
    return Object.values(held).filter((owner) => owner === node.owner).length
  }
  const steps: (() => Promise<void> | void)[] = [
    () => until('both to have a share', async () => (await has(one)) > 0 && (await has(other)) > 0),
    () => checkTasks(t, one),
    () => other.freeze(),
    () => until('what it had to be taken', async () => (await has(other)) === 0),
    () => undefined, // it goes on with what it has no more
    () => other.thaw(),
    () => until('its share again', async () => (await has(other)) > 0),
    async () => {
      doors = [one]
      await other.close()
    },
    async () => {
      other = await node('other')
      doors = [one, other]
    },
    () => until('its share again', async () => (await has(other)) > 0),
  ]
  const rest = day.fixes.slice(2 * third)
  const every = Math.floor(rest.length / FRAME / (steps.length + 1))
  await send(
    () => doors,
    (setting as Setting).ingestKey,
    rest,
    (frame) => {
      if (frame > 0 && frame % every === 0) return steps.shift()?.()
    },
  )
  t.same(steps, [], 'all has been moved while points came')

  const trackers = await checkHistory(t, one, setting as Setting, day)
  const transitions = await checkTransitions(t, other, setting as Setting, day, trackers)
  const repeats = await checkDeliveries(t, receiver, transitions)
  await checkLog(t, engines)
  t.comment(`${repeats} deliveries were repeated under their own id`)
  const newest = [...tracksOf(day.fixes)].map(
    ([externalId, track]) => [trackers.get(externalId) as string, track[track.length - 1]] as const,
  )
  watching.push(await watchPositions(other, token))
  for (const { newest: seen, close } of watching) {
    await until('live positions', () =>
      newest.every(([id, fix]) => Date.parse(seen.get(id)?.recordedAt ?? '') === fix.recordedAt),
    )
    close()
  }
})

test('--role refuses some of the roles on embedded engines', async (t) => {
  const config = readConfig(['--data', folderOf(t), '--port', '0', '--role', 'api,live'], {})
  await t.rejects(openApp(config, keepErrors([])), /embedded engines cannot share/)
})
