import { randomUUID } from 'node:crypto'
import { test } from 'tap'
import { type ApiWorld, openApiWorld } from '../support/api-world.ts'
import { callOf, LEADS_ELSEWHERE } from '../support/each-route.ts'
import { folderOf } from '../support/folder-of.ts'
import { operationsOf, type Operation } from '../support/open-api.ts'
import { SECOND_FACTOR_CALLS } from '../support/second-factor-calls.ts'
import { type Answer, call, startService, type Service } from '../support/service.ts'

/** Their calls sign up first: test/processes/walks-of-second-factors.ts repeats them. */
const REPEATED_ELSEWHERE = [...LEADS_ELSEWHERE, ...Object.keys(SECOND_FACTOR_CALLS)]
/** What they are attached to is gone, and they with it. */
const GONE_WITH_WHAT_THEY_NAME = ['createTaskFile', 'createDataFile']
/** They would end the organization or the session of the walk, and of a job that is deleted nothing is left in the log. */
const NOT_DELETED = ['eraseOrganization', 'endSession', 'deleteBacktest', 'deleteImport', 'deleteExport']
/** The token of the call has ended; the task had those people before. */
const NOT_REPEATED = ['logout', 'assignTask']

interface Sent {
  operation: Operation
  send(key?: string): Promise<Answer>
  first: Answer
}

const takesKey = ({ parameters }: Operation): boolean =>
  parameters.some(({ $ref }) => $ref === '#/components/parameters/IdempotencyKey')

/** Those that make something which has an id from then on. */
const makes = ({ responses }: Operation): boolean => '201' in responses || '202' in responses
/** Their answer is the file while there are few rows, and makes nothing. */
const FILES = ['exportData', 'exportTasks']

const sendEach = async (service: Service, world: ApiWorld, operations: readonly Operation[]): Promise<Sent[]> => {
  const sent: Sent[] = []
  for (const operation of operations) {
    const [method, path, options] = await callOf(service, world, operation, {})
    const own = randomUUID()
    const send = (key = own): Promise<Answer> =>
      call(service, method, path, { ...options, headers: { ...options.headers, 'idempotency-key': key } })
    sent.push({ operation, send, first: await send() })
  }
  return sent
}

/** Deletes what was made, gives its values away to others, and deletes those and all that any of them names. Answers what is left. */
const deleteAll = async (
  service: Service,
  { token, ids, spare }: ApiWorld,
  operations: readonly Operation[],
  sent: readonly Sent[],
): Promise<string[]> => {
  const deletes = operations.filter(
    ({ method, operationId }) => method === 'DELETE' && !NOT_DELETED.includes(operationId),
  )
  const left = new Set<string>()
  const add = (name: string, id: string): void => {
    const found = deletes.find(({ params, path }) => params.at(-1) === name && path.endsWith(`{${name}}`))
    if (found !== undefined)
      left.add(found.path.replace(/\{geofenceId\}(?=.)/, ids.geofenceId).replace(`{${name}}`, id))
  }
  const addMade = ({ path }: Operation, { json }: Answer): void => {
    const noun = path.replace(/\/invite$/, '')
    const own = deletes.find((one) => one.path.replace(/\/\{\w+\}$/, '') === noun)
    if (own !== undefined && json.data?._id !== undefined) add(own.params.at(-1) as string, json.data._id)
  }
  const deleteRound = async (): Promise<boolean> => {
    let isOn = false
    for (const path of [...left]) {
      const { status, json } = await call(service, 'DELETE', path, { token })
      if (status === 200 || status === 404) isOn = left.delete(path)
      // What uses it goes first, as far as it is named one by one.
      const named = (json.errors ?? []).filter((one: { path: string }) => /^\/[^/]+\/[^/]+/.test(one.path))
      const users = named.filter((one: { path: string }) => !left.has(one.path))
      for (const one of users) left.add(one.path)
      isOn ||= users.length > 0
    }
    return isOn
  }
  for (const { operation, first } of sent) addMade(operation, first)
  while (await deleteRound());
  for (const { operation, send } of sent) addMade(operation, await send(randomUUID()))
  for (const [name, id] of [...Object.entries(ids), ...Object.entries(spare)]) add(name.split(':')[0], id)
  while (await deleteRound());
  return [...left]
}

test('every request whose answer was lost is answered the same by its repeat, what it made also when all that it named is gone', async (t) => {
  const service = await startService(
    folderOf(t),
    ['--webhook-schedule', '20ms'],
    0,
    'dist/test/support/lost-answers-child.js',
  )
  t.teardown(() => service.kill())
  const operations = operationsOf((await call(service, 'GET', '//openapi.json')).json)
  const world = await openApiWorld(service)
  const walked = operations.filter((one) => takesKey(one) && !REPEATED_ELSEWHERE.includes(one.operationId))
  t.ok(walked.length > 40, `${walked.length} operations`)
  const sent = await sendEach(service, world, walked)
  const made = sent.filter(
    ({ operation, first }) => makes(operation) && !(FILES.includes(operation.operationId) && first.status === 200),
  )
  for (const one of sent) {
    const { operation, send, first } = one
    t.ok(first.status < 300, `${operation.operationId} answers ${first.status} ${first.text}`)
    if (NOT_REPEATED.includes(operation.operationId)) continue
    const again = await send()
    t.equal(again.status, first.status, `${operation.operationId} again: ${again.text}`)
    if (made.includes(one)) t.same(again.json.data, first.json.data, operation.operationId)
  }
  t.same(await deleteAll(service, world, operations, made), [], 'nothing of it is left')
  for (const { operation, send, first } of made) {
    if (GONE_WITH_WHAT_THEY_NAME.includes(operation.operationId)) continue
    const again = await send()
    t.equal(again.status, first.status, `${operation.operationId}: ${again.text}`)
    t.equal(again.json.data?._id, first.json.data?._id, operation.operationId)
  }
})
