import { test } from 'tap'
import { PERMISSIONS } from '../../src/features/identity/users/predefined-roles.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'
import type { Method } from '../../src/kit/http/route.ts'
import { openApi } from '../../src/roles/api.ts'
import { routeCaller } from '../support/call-route.ts'
import { CALLER } from './clients.ts'
import { EDITOR, ORGANIZATION, writeFleet } from './fleet.ts'
import { runHeld } from './held-time.ts'
import { Host, type World } from './host.ts'
import { worldOf } from './simulate.ts'
import { BEGUN_MS, Timeline } from './timeline.ts'
import type { Trouble } from './wire.ts'

/** Every question and every answer takes a millisecond, so that time counts the answers that wait for each other. */
const EVEN: Trouble = { lost: 0, slow: 1, slowMsMax: 1 }
const ANSWER_MS = 2
const SETTLED_MS = 12_000
/** Nothing of one request is left when the next one begins. */
const PAUSE_MS = 1_000
const ENDED_MS = 200_000

const EDITOR_CALLER: UserCaller = {
  kind: 'user',
  organizationId: ORGANIZATION,
  userId: EDITOR,
  identityId: idFrom('simulated', 'identity'),
  email: 'e@example.com',
  jti: 'j',
  expiresAt: Number.POSITIVE_INFINITY,
  roleId: idFrom('simulated', 'role'),
  roleKey: 'owner',
  permissions: new Set(PERMISSIONS),
  permissionDetails: [],
  hubIds: 'all',
  teamIds: [],
}

/** Runs the API of one process; answers of engines that each piece of work waited for, by its title. */
const counted = async (work: (counting: Counting) => Promise<void>): Promise<Map<string, number>> => {
  const timeline = new Timeline(1)
  const world = worldOf(timeline)
  const host = new Host(world, 'node-0', 0)
  for (const { log, tables, history } of [world.troubles, host.troubles])
    for (const trouble of [log, tables, history]) Object.assign(trouble, EVEN)
  const counts = new Map<string, number>()
  let isOver = false
  const count: Counting['count'] = async (title, run) => {
    await new Promise<void>((go) => timeline.after(PAUSE_MS, go))
    const begunMs = timeline.nowMs
    const done = await run()
    counts.set(title, (timeline.nowMs - begunMs) / ANSWER_MS)
    return done
  }
  const run = async (): Promise<void> => {
    writeFleet(world.log)
    await host.open()
    const services = host.services!
    const { routes = [] } = await openApi(services)
    await new Promise<void>((go) => timeline.after(SETTLED_MS, go))
    const call = routeCaller({ routes, clock: services.clock, settle: services.settle })
    const ask: Counting['ask'] = (title, method, path, body) =>
      count(title, async () => {
        const answer = await call(method, path, { caller: EDITOR_CALLER, body })
        if (answer.status >= 300) throw new Error(`${title}: ${JSON.stringify(answer.body)}`)
        return answer.body.data
      })
    await work({ world, host, count, ask })
    isOver = true
  }
  const begin = (): void => void run().catch((error: unknown) => timeline.thrown.push(error))
  await runHeld(timeline, begin, () => isOver || timeline.nowMs > ENDED_MS)
  if (timeline.thrown.length > 0) throw timeline.thrown[0]
  return counts
}

interface Counting {
  world: World
  host: Host
  count<Done>(title: string, run: () => Promise<Done>): Promise<Done>
  ask(title: string, method: Method, path: string, body?: object): Promise<{ _id: string }>
}

/** Most answers that may wait for each other until a request is answered, with all lists that follow it. */
const ANSWERS_MAX: { [title: string]: number } = {
  'create a flow': 8,
  'create a hub': 6,
  'create a role': 11,
  'create a role again': 10,
  'rename a role': 12,
  'create a task': 9,
  'change a task': 8,
  'start a task': 8,
  'create a vehicle': 6,
  'change a vehicle': 6,
  'create a tracker': 7,
  'create another tracker': 7,
  'the first point of a tracker': 6,
  'another point': 1,
}

test('requests wait for few answers of engines that wait for each other', async (t) => {
  const counts = await counted(async ({ world, host, ask, count }) => {
    const steps = [{ id: 'one', name: 'One', components: [] }]
    const { _id: flowId } = await ask('create a flow', 'POST', '/flow', { name: 'Round', steps })
    const { _id: hubId } = await ask('create a hub', 'POST', '/hub', { name: 'Hub', lat: 1, lng: 1 })
    await ask('create a role', 'POST', '/role', { name: 'One', permissions: ['view/hub'] })
    const role = await ask('create a role again', 'POST', '/role', { name: 'Two', permissions: ['view/hub'] })
    await ask('rename a role', 'PATCH', `/role/${role._id}`, { name: 'Three' })
    const task = { flowId, title: 'Visit', hubId, assigneeIds: [EDITOR] }
    const { _id: taskId } = await ask('create a task', 'POST', '/task', task)
    await ask('change a task', 'PATCH', `/task/${taskId}`, { title: 'Call' })
    await ask('start a task', 'POST', `/task/${taskId}/start`)
    const vehicle = await ask('create a vehicle', 'POST', '/vehicle', { name: 'Van', type: 'car', hubId })
    await ask('change a vehicle', 'PATCH', `/vehicle/${vehicle._id}`, { name: 'Truck' })
    await ask('create a tracker', 'POST', '/tracker', { name: 'Bus', externalId: 'bus-1', hubId })
    await ask('create another tracker', 'POST', '/tracker', { name: 'Bus', externalId: 'bus-2', hubId })
    for (const title of ['the first point of a tracker', 'another point'])
      await count(title, () => {
        const recordedAt = BEGUN_MS + Math.floor(world.timeline.nowMs)
        return host.door!.store.store(CALLER, [{ externalId: 'bus-3', recordedAt, lat: 1, lng: 1 }])
      })
  })
  t.same([...counts.keys()], Object.keys(ANSWERS_MAX))
  for (const [title, answers] of counts) {
    const max = ANSWERS_MAX[title]
    t.ok(answers <= max, `${title}: ${answers} answers, at most ${max}`)
  }
})
