import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { CHANGES, type Change, type Move, OfflineModel, ordersOf, STEPS, type Step } from '../support/offline-model.ts'
import { formOf, png } from '../support/pictures.ts'
import { freshlySeeded } from '../support/random.ts'
import { ask, call, type Json, samplesMade, type Service, signUp, startService, until } from '../support/service.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

/** Orders that are played. */
const GAMES = 24
const PASSWORD = 'Correct-horse-9-battery'

interface Game {
  what: string
  id: string
  model: OfflineModel
  moves: Move[]
  done: Map<Step, number>
}

interface Sent {
  path: string
  token: string
  body: Json
  headers: { [name: string]: string }
}

/** What is asked of the service in one go, in the order in which orders have it. */
const PHASES = [0, 1, 2].flatMap((slot) => [
  ...STEPS.map((step) => ({ slot, step })),
  ...(slot < 2 ? [{ slot, step: undefined }] : []),
])

/** How many changes come before a step. */
const slotOf = (moves: readonly Move[], step: { does: Step } | { sends: Step }): number => {
  const at = moves.findIndex((one) => JSON.stringify(one) === JSON.stringify(step))
  return moves.slice(0, at).filter((one) => 'change' in one).length
}

const changeOf = (moves: readonly Move[], slot: number): Move & { change: Change } =>
  moves.filter((one) => 'change' in one)[slot]

test('work done offline holds though SIGKILL comes between any two steps, and in the middle of each', {
  timeout: 900_000,
}, async (t) => {
  const random = freshlySeeded(t)
  const folder = folderOf(t)
  let service: Service = await startService(folder)
  t.teardown(() => service.kill())
  const { token, hubId, email } = await signUp(service)
  await samplesMade(service, token)
  const make = async (path: string, body: Json): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const other = (await make('/hub', { name: 'Other', lat: 50, lng: 20 }))._id
  const roleId = (await ask(service, 'GET', '/roles?key=fieldUser', { token })).data[0]._id
  const person = async (name: string, hubs: string[]) => {
    const body = { name, email: `${name}.${email}`, password: PASSWORD, roleId, hubId: hubs }
    const { _id } = await make('/user', body)
    const login = await ask(service, 'POST', '/auth/login', { body: { email: body.email, password: PASSWORD } })
    return { id: _id as string, token: login.token as string }
  }
  const [ada, bob] = [await person('ada', [hubId]), await person('bob', [hubId, other])]
  const steps = [{ id: 'one', name: 'One', components: [{ id: 'photo', type: 'photo', required: true }] }]
  const { _id: flowId } = await make('/flow', { name: 'Proof', steps })
  const receiver = await openReceiver(t)
  const automation = await make('/automation', {
    name: 'Finished',
    event: 'onTaskFinished',
    automationType: 'webhook',
    automationDetails: { url: receiver.url },
  })
  receiver.secrets.set(automation._id, automation.automationDetails.secret)

  const bodies: { [change in Change]?: [string, Json] } = {
    cancel: ['cancel', {}],
    assignBob: ['assign', { assigneeIds: [bob.id] }],
    assignAda: ['assign', { assigneeIds: [ada.id] }],
    moveAway: ['move', { hubId: other }],
    reopen: ['reopen', {}],
  }
  const ofOne = async ({ id, done, moves }: Game, next: Move): Promise<Sent> => {
    const key = `${id}-${moves.indexOf(next)}-${JSON.stringify(next)}`
    if ('change' in next) {
      const [name, body] = bodies[next.change] as [string, Json]
      return { path: `/task/${id}/${name}`, token, body, headers: { 'idempotency-key': key } }
    }
    const step = 'sends' in next ? next.sends : next.does
    const at = new Date(done.get(step) as number).toISOString()
    const path = `/task/${id}/${step === 'file' ? 'files' : step}`
    if (step !== 'file') return { path, token: ada.token, body: { at }, headers: {} }
    const form = new FormData()
    form.append('componentId', 'photo')
    form.append('at', at)
    form.append('file', new File([png()], 'a.png'))
    const { body, headers } = await formOf(form)
    return { path, token: ada.token, body, headers: { ...headers, 'idempotency-key': key } }
  }

  const kinds = CHANGES.filter((kind) => bodies[kind] !== undefined)
  const pick = <One>(list: readonly One[]): One => list[Math.floor(random() * list.length)]
  const games: Game[] = []
  for (let i = 0; i < GAMES; i++) {
    const moves = pick(ordersOf(pick(kinds), pick(kinds)))
    const { _id } = await make('/task', { flowId, title: `Deliver ${i}`, hubId, assigneeIds: [ada.id] })
    const what = moves.map((one) => Object.entries(one).flat().join(' ')).join(', ')
    games.push({ what, id: _id, model: new OfflineModel(Date.now()), moves, done: new Map() })
  }

  let passed = Date.now()
  /** A time of its own: nothing else is of the same millisecond. */
  const tick = async (): Promise<number> => {
    await until('the clock to go on', () => Date.now() > passed + 5)
    passed = Date.now()
    return passed
  }
  for (const { slot, step } of PHASES) {
    if (step === 'start')
      for (const [i, does] of STEPS.entries()) {
        const now = (await tick()) + i
        for (const one of games) if (slotOf(one.moves, { does }) === slot) one.done.set(does, now)
      }
    await tick()
    const due = games.flatMap((one) => {
      const next = step === undefined ? changeOf(one.moves, slot) : { sends: step }
      return 'change' in next || slotOf(one.moves, next) === slot ? [{ one, next }] : []
    })
    const answers = new Map<Game, Json>()
    const send = async ({ one, next }: (typeof due)[number]): Promise<void> => {
      const { path, ...sent } = await ofOne(one, next)
      const answer = await call(service, 'POST', path, sent)
      // An organization has so many uploads at once: the phone sends it again.
      if (answer.status !== 503) answers.set(one, answer)
    }
    const sending = due.map((each) => send(each).catch(() => undefined))
    if (sending.length > 0) await Promise.race(sending)
    await service.kill()
    await Promise.all(sending)
    service = await startService(folder)
    for (const each of due) if (!answers.has(each.one)) await send(each)
    for (const { one, next } of due) {
      // When a change came, as the service has it: on a busy machine its answer comes many seconds later.
      const now = Date.parse(answers.get(one).json.data?.updatedAt)
      const status =
        'change' in next
          ? one.model.change(next.change, now)
          : one.model.step(step as Step, one.done.get(step as Step) as number)
      t.equal(
        answers.get(one).status,
        status,
        `${one.what}: ${JSON.stringify(next)} ${answers.get(one).text.slice(0, 200)}`,
      )
    }
  }

  const historyOf = async (id: string) => (await ask(service, 'GET', `/task/${id}/history`, { token })).data as Json[]
  const nameOf = (userId: string | undefined) => userId && (userId === ada.id ? 'ada' : 'bob')
  for (const { id, what, model } of games) {
    const { data } = await ask(service, 'GET', `/task/${id}`, { token })
    t.match(
      {
        ...data,
        people: data.assigneeIds.map(nameOf),
        finishedBy: nameOf(data.finishedBy),
        isAway: data.hubId === other,
      },
      {
        state: model.state,
        people: [...model.people],
        finishedBy: model.finishedBy,
        finishedAt: model.finishedAt && new Date(model.finishedAt).toISOString(),
        isAway: model.isAway,
      },
      `${what}: ${JSON.stringify({ state: data.state, version: data.version, late: data.late, history: await historyOf(id) })}`,
    )
    t.equal(data.components.photo?.length ?? 0, model.hasFile ? 1 : 0, `${what}: one photo`)
  }
  const expected = games.reduce((sum, { model }) => sum + model.finishes, 0)
  const told = () => new Set(receiver.deliveries.map((one: Json) => one.id)).size
  await until('each finish to be told', () => told() >= expected)
  const runs = async () => (await ask(service, 'GET', '/automation-log?limit=500', { token })).data.length as number
  // The log of runs follows what was sent.
  await until('each run in the log', async () => (await runs()) >= expected)
  t.equal(await runs(), expected, 'one run for each finish')
})
