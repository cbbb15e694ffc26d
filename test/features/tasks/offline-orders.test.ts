import { isDeepStrictEqual } from 'node:util'
import { test, type Test } from 'tap'
import { TASK, type TaskValues } from '../../../src/features/tasks/views.ts'
import { decodeJson } from '../../../src/kernel/event.ts'
import type { ResourceData } from '../../../src/kit/commands/declared-event.ts'
import { type CallAnswer, routeCaller } from '../../support/call-route.ts'
import { taskFeed } from '../../../src/features/tasks/live-feed.ts'
import { LATEST_POSITIONS } from '../../../src/features/locations/views.ts'
import { heardEvent } from '../../../src/reactors/dispatch/subject-event.ts'
import { SubjectRows } from '../../../src/reactors/dispatch/subject-rows.ts'
import { type LiveWatcher, liveHubOver, watchLive } from '../../support/live-client.ts'
import {
  CHANGES,
  type Change,
  type Move,
  OfflineModel,
  ordersOf,
  STEPS,
  type Step,
} from '../../support/offline-model.ts'
import { openTasks } from '../../support/open-tasks.ts'
import type { Session } from '../../support/open-identity.ts'
import { formOf, png } from '../../support/pictures.ts'
import { freshlySeeded } from '../../support/random.ts'
import { type Json, until } from '../../support/service.ts'

const FLOW = {
  name: 'Proof',
  steps: [{ id: 'one', name: 'One', components: [{ id: 'photo', type: 'photo', required: true }] }],
}

/** How far the phone's clock is off. */
const CLOCKS_MS = [0, -299_000, 299_000]
/** Of each order by each clock that is wrong. */
const SAMPLE = 1 / 20
/** Between what is done, what is sent and what the office does. */
const TICK_MS = 90_000
/** An organization's. */
const UPLOADS_AT_ONCE = 16

interface Game {
  what: string
  model: OfflineModel
  id: string
  clockMs: number
  moves: readonly Move[]
  done: Map<Step, number>
  /** Status and code of each answer, and what they should have been. */
  answers: string[]
  expected: string[]
}

/** What is to be played: every order by a right clock, some by wrong ones. */
const gamesOf = (random: () => number, now: number): Game[] =>
  CHANGES.flatMap((first) =>
    CHANGES.flatMap((second) =>
      ordersOf(first, second).flatMap((moves) =>
        CLOCKS_MS.filter((clockMs) => clockMs === 0 || random() < SAMPLE).map((clockMs) => {
          const words = moves.map((one) => Object.entries(one).flat().join(' ')).join(', ')
          const what = `${clockMs / 1000} s: ${words}`
          return {
            what,
            model: new OfflineModel(now),
            id: '',
            clockMs,
            moves,
            done: new Map(),
            answers: [],
            expected: [],
          }
        }),
      ),
    ),
  )

/** Before the first change, between both, after the second. */
const slotsOf = (moves: readonly Move[]): Move[][] => {
  const slots: Move[][] = [[], [], []]
  let slot = 0
  for (const move of moves) {
    slots[slot].push(move)
    if ('change' in move) slot++
  }
  return slots
}

const openPlay = async (t: Test) => {
  const world = await openTasks(t)
  const { ada, bob, owner, clock, move, other } = world
  const { _id: flowId } = await world.make('/flow', FLOW)
  await world.tables.declare(LATEST_POSITIONS)
  const hub = liveHubOver(world)
  const feed = await taskFeed().follow(hub)
  t.teardown(() => feed.close())
  // What follows a write is waited for once for all.
  const call = routeCaller({ routes: world.routes, clock })
  const callers = { owner: await world.callerOf(owner), ada: await world.callerOf(ada.session) }
  const post = (who: keyof typeof callers, path: string, body: unknown, headers = {}) =>
    call('POST', path, { caller: callers[who], body, headers })
  const formWith = async (at?: string) => {
    const form = new FormData()
    for (const [name, value] of Object.entries({ componentId: 'photo', ...(at && { at }) })) form.append(name, value)
    form.append('file', new File([png()], 'a.png'))
    return formOf(form)
  }
  const act = (name: string, body: object) => (id: string) => post('owner', `/task/${id}/${name}`, body)
  const office: { [change in Change]: (id: string) => Promise<CallAnswer> } = {
    cancel: act('cancel', {}),
    assignBob: act('assign', { assigneeIds: [bob.id] }),
    assignAda: act('assign', { assigneeIds: [ada.id] }),
    moveAway: act('move', { hubId: other }),
    reopen: act('reopen', {}),
    rival: async (id) => {
      const assigned = await move(id, 'assign', { assigneeIds: [bob.id] })
      if (assigned.status !== 200) return assigned
      if (assigned.body.data.state === 'assigned') await move(id, 'start', {}, bob.session)
      const { body, headers } = await formWith()
      await bob.session.call('POST', `/task/${id}/files`, body, { headers })
      return move(id, 'finish', {}, bob.session)
    },
  }
  const send = async (id: string, step: Step, ms: number): Promise<CallAnswer> => {
    const at = new Date(ms).toISOString()
    if (step !== 'file') return post('ada', `/task/${id}/${step}`, { at })
    const { body, headers } = await formWith(at)
    return post('ada', `/task/${id}/files`, body, headers)
  }
  return {
    ...world,
    office,
    send,
    task: async (body: object): Promise<Json> =>
      (await post('owner', '/task', { flowId, title: 'Deliver', hubId: world.hubId, ...body })).body.data,
    /** All that was written is in the tables. */
    settled: () => world.task({ title: 'Other' }),
    hears: async (session: Session) => watchLive(hub, await world.callerOf(session), { channels: ['task'] }),
  }
}

test('every order of two changes of the office and three steps of a phone ends as the contract says', {
  timeout: 600_000,
}, async (t) => {
  const world = await openPlay(t)
  const { ada, bob, task, clock, log, office, send, settled } = world
  const heard = { ada: await world.hears(ada.session), bob: await world.hears(bob.session) }
  const games = gamesOf(freshlySeeded(t), clock.now())
  const all = async (act: (one: Game) => Promise<void>): Promise<void> => {
    const waiting = games.values()
    const some = async () => {
      for (const one of waiting) await act(one)
    }
    await Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, some))
    await settled()
  }
  const play = async (one: Game, next: Move): Promise<void> => {
    const { id, model, clockMs, done, answers, expected } = one
    const now = clock.now()
    if ('does' in next) return void done.set(next.does, now + clockMs + STEPS.indexOf(next.does) * 1_000)
    const wasTheirs = model.isAdas()
    const ms = 'sends' in next ? (done.get(next.sends) as number) : 0
    const answer = 'sends' in next ? await send(id, next.sends, ms) : await office[next.change](id)
    const status = 'sends' in next ? model.step(next.sends, ms) : model.change(next.change, now)
    answers.push(`${answer.status} ${answer.body.code ?? ''}`)
    const code = wasTheirs || 'change' in next ? 'conflict' : 'taken_away'
    expected.push(`${status} ${status === 409 ? code : status === 400 ? 'invalid' : ''}`)
  }

  await all(async (one) => void (one.id = (await task({ assigneeIds: [ada.id] }))._id))
  for (let slot = 0; slot < 3; slot++)
    for (const kind of ['does', 'sends', 'change'] as const) {
      clock.advance(TICK_MS)
      await all(async (one) => {
        for (const next of slotsOf(one.moves)[slot]) if (kind in next) await play(one, next)
      })
    }

  const wrong: object[] = []
  const compare = (what: string, found: unknown, wanted: unknown): void => {
    if (!isDeepStrictEqual(found, wanted)) wrong.push({ what, found, wanted })
  }
  const nameOf = (userId: string | undefined) => userId && (userId === ada.id ? 'ada' : 'bob')
  for (const { id, what, model, answers, expected } of games) {
    const events = (await log.read(`task-${id}`, 0, 100)).filter(({ type }) =>
      Object.values<string>(TASK).includes(type),
    )
    const last = decodeJson<ResourceData>(events[events.length - 1].data).values as unknown as TaskValues
    const rows = new SubjectRows(log)
    const fired: string[] = []
    for (const event of events) fired.push(...(await heardEvent(rows, event)).triggers.map((one) => one.event))
    compare(
      what,
      {
        answers,
        state: last.state,
        startedBy: nameOf(last.startedBy),
        finishedBy: nameOf(last.finishedBy),
        finishedAt: last.finishedAt && Date.parse(last.finishedAt),
        people: last.assigneeIds.map(nameOf),
        isAway: last.hubId === world.other,
        hasFile: last.components.photo !== undefined,
        overtaken: last.overtaken?.length ?? 0,
        fired: fired.filter((name) => name === 'onTaskFinished').length,
      },
      {
        answers: expected,
        state: model.state,
        startedBy: model.startedBy,
        finishedBy: model.finishedBy,
        finishedAt: model.finishedAt,
        people: [...model.people],
        isAway: model.isAway,
        hasFile: model.hasFile,
        overtaken: model.overtaken,
        fired: model.finishes,
      },
    )
  }
  t.same(wrong.slice(0, 5), [], `${wrong.length} of ${games.length} tasks end otherwise`)

  await task({ title: 'The end', assigneeIds: [ada.id, bob.id] })
  for (const one of [heard.ada, heard.bob])
    await until('the live channel to have all', () => one.events().at(-1)?.event.title === 'The end')
  const lastTold = ({ events }: LiveWatcher): Map<string, Json> =>
    new Map(events().map(({ event }) => [event._id, event] as const))
  const [adas, bobs] = [lastTold(heard.ada), lastTold(heard.bob)]
  const untold = games.filter(({ id, model }) => {
    const isAdaTold = model.isAdas() ? adas.get(id)?.state === model.state : adas.get(id)?.gone === true
    return !isAdaTold || (model.people.has('bob') && bobs.get(id)?.state !== model.state)
  })
  t.same(
    untold.slice(0, 5).map(({ what }) => what),
    [],
    'who has a task and who lost it are told so',
  )
})
