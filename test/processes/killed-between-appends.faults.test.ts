import { randomBytes } from 'node:crypto'
import { test, type Test } from 'tap'
import { PROCESS } from '../../src/kit/commands/process.ts'
import { takeOutReferences } from '../../src/reactors/references/take-out.ts'
import type { CallAnswer } from '../support/call-route.ts'
import { dyingLog, Killed } from '../support/dying-log.ts'
import { openIdentity, PASSWORD } from '../support/open-identity.ts'
import { halvesOf } from './office-truth.ts'
import { DATA_WALKS } from './walks-of-data.ts'
import { HUB_WALKS } from './walks-of-hubs.ts'
import { ROUTE_WALKS } from './walks-of-routes.ts'
import { SECOND_FACTOR_WALKS } from './walks-of-second-factors.ts'
import { type Request, type Walk, WALKS, type World } from './walks.ts'

let addresses = 0
/** Whoever tries passwords from one address is soon refused. */
const addressOfItsOwn = (): string => `10.0.0.${++addresses}`

/** Sends it as its caller, to a service whose log may die; undefined when it did. */
const send = async (
  { by, method, url, body }: Request,
  call: World['call'],
  authenticate: World['authenticator']['authenticate'],
  seed?: Buffer,
): Promise<CallAnswer | undefined> => {
  const caller = by && (await authenticate(by.token))
  return call(method, url, { caller, body, seed, address: addressOfItsOwn() }).catch((error: unknown) => {
    if (!(error instanceof Killed)) throw error
    return undefined
  })
}

/** One life ends after so many writes, the next one begins: nothing is half then, nor after both repeats. Answers how many writes there were when it did not end. */
const walk = async (t: Test, world: World, prepare: Walk['prepare'], writes: number, isSameFirst: boolean) => {
  const { authenticate } = world.authenticator
  const { request, other, check } = await prepare(world)
  const dying = dyingLog(world.log, writes)
  const seed = randomBytes(32)
  const first = world.over(dying.log)
  const answer = await send(request, first.call, authenticate, seed)
  await first.runs.stopCarryingOn()

  // Another life: nothing of the first one but what it stored.
  await openKnown(world, dying.appended)
  const second = world.over(world.log)
  const references = takeOutReferences(world)
  await second.runs.idle()
  t.same(await halvesOf(world), [], `after ${writes} writes nothing is half: ${dying.appended}`)
  const same = async () => send(await again(world, request), second.call, authenticate, seed)
  const others = async () => send(await again(world, other), second.call, authenticate)
  const answers = isSameFirst ? [await same(), await others()] : [await others(), await same()]
  for (const one of answers) t.ok(one !== undefined && one.status < 500, `answered ${one?.status}`)
  await check(t, world, answers[1] as CallAnswer)
  t.same(await halvesOf(world), [], `repeated after ${writes} writes, nothing is half`)
  await references.close()
  await second.runs.stopCarryingOn()
  return answer === undefined ? undefined : dying.appended
}

/** So few writes are walked with both orders of repeats; more with each in turn. */
const BOTH_ORDERS_MAX = 4

for (const { operationId, what, prepare } of [
  ...WALKS,
  ...DATA_WALKS,
  ...SECOND_FACTOR_WALKS,
  ...HUB_WALKS,
  ...ROUTE_WALKS,
]) {
  test(`${what} (${operationId}), killed between every two writes and repeated`, { timeout: 600_000 }, async (t) => {
    const world = await openIdentity(t)
    let appended: readonly string[] | undefined
    let writes = 0
    for (; appended === undefined; writes++) appended = await walk(t, world, prepare, writes, writes % 2 === 0)
    t.comment(`${writes - 1} writes: ${appended}`)
    if (writes > BOTH_ORDERS_MAX) return
    for (let again = 0; again < writes; again++) await walk(t, world, prepare, again, again % 2 === 1)
  })
}

/** Whoever's token was revoked by their own call signs in again. */
const again = async (world: World, sent: Request): Promise<Request> => {
  const { by } = sent
  if (by === undefined) return sent
  const isGood = await world.authenticator.authenticate(by.token).then(
    () => true,
    () => false,
  )
  if (isGood) return sent
  const signIn = (password: string) => world.login(by.email, password, { address: addressOfItsOwn() })
  return { ...sent, by: await signIn(PASSWORD).catch(() => signIn(`${PASSWORD}-2`)) }
}

/** Waits until the table of open processes has what was begun. */
const openKnown = async ({ log, settle }: World, appended: readonly string[]): Promise<void> => {
  for (const stream of appended.filter((name) => name.startsWith('process-'))) {
    const events = await log.read(stream, 0, 10)
    const last = events.filter(({ type }) => type === PROCESS.started).at(-1) ?? events[0]
    await settle({ position: last.position, types: [last.type] }, 60_000)
  }
}
