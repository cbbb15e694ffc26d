import { test, type Test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, call, signUp, startService, until, type Json, type Service } from '../support/service.ts'
import { freshlySeeded } from '../support/random.ts'

const KILLS = 6
/** A life ends after so many answers at most, and half as many at least, while others are under way. */
const ANSWERS = 30
const AT_ONCE = 6
const NAMES = 6
/** Each is made twice under the kills and once after them: an address that nobody confirmed is mailed a few times a day alone. */
const ADDRESSES = 60
const MADE_MAX = 2

/** One of the things that have a unique value: how it is made, listed and taken away. */
interface Kind {
  path: string
  list: string
  field: 'name' | 'email'
  values: readonly string[]
  body(value: string): object
  /** How often a value may be made. */
  madeMax?: number
}

const listed = async (service: Service, token: string, { list, field, values }: Kind): Promise<Map<string, string>> => {
  const rows: Json[] = (await ask(service, 'GET', `${list}?limit=500`, { token })).data
  const own = rows.filter((row) => values.includes(row[field]))
  const ids = new Map<string, string>(own.map((row) => [row[field], row._id]))
  if (ids.size < own.length) throw new Error(`a ${field} is there twice: ${JSON.stringify(own)}`)
  return ids
}

/** Makes what is not there and deletes what is, many at once, until the service dies after so many answers. Answers how many commands there were. */
const churn = async (
  service: Service,
  token: string,
  kinds: readonly Kind[],
  random: () => number,
  made: Map<string, number>,
): Promise<number> => {
  const there = await Promise.all(kinds.map((kind) => listed(service, token, kind)))
  const last = Math.ceil((ANSWERS * (1 + random())) / 2)
  const busy = new Set<string>()
  let sent = 0
  let answers = 0
  const work = async (): Promise<void> => {
    while (answers < last) {
      const place = Math.floor(random() * kinds.length)
      const kind = kinds[place]
      const value = kind.values[Math.floor(random() * kind.values.length)]
      const id = there[place].get(value)
      const times = made.get(value) ?? 0
      if (busy.has(value) || (id === undefined && times >= (kind.madeMax ?? Number.POSITIVE_INFINITY))) continue
      busy.add(value)
      sent++
      if (id === undefined) made.set(value, times + 1)
      const answer =
        id === undefined
          ? await call(service, 'POST', kind.path, { token, body: kind.body(value) })
          : await call(service, 'DELETE', `${kind.path}/${id}`, { token })
      // What an earlier life left may have come to its end since it was listed.
      if (![200, 201, 404, 409].includes(answer.status)) throw new Error(`${value}: ${answer.status} ${answer.text}`)
      if (answer.status === 201) there[place].set(value, answer.json.data._id)
      else if (id !== undefined) there[place].delete(value)
      busy.delete(value)
      if (++answers === last) await service.kill()
    }
  }
  const ended = await Promise.allSettled(Array.from({ length: AT_ONCE }, work))
  // Who was under way when it died has no answer.
  for (const one of ended)
    if (one.status === 'rejected' && !/other side closed|ECONNRE|socket|terminated/i.test(String(one.reason)))
      throw one.reason
  return sent
}

/** Each value can be had: who holds it is listed, can be deleted, and leaves it free. */
const checkFree = async (t: Test, service: Service, token: string, kind: Kind): Promise<void> => {
  for (const value of kind.values) {
    let answer = ''
    const isMade = async (): Promise<boolean> => {
      const made = await call(service, 'POST', kind.path, { token, body: kind.body(value) })
      answer = made.text
      if (made.status === 201) return true
      const id = (await listed(service, token, kind)).get(value)
      if (id !== undefined) await ask(service, 'DELETE', `${kind.path}/${id}`, { token })
      return false
    }
    await until(`${value} to be free`, isMade).catch(() => t.fail(`${value} is locked: ${answer}`))
  }
  const there = await listed(service, token, kind)
  t.same([...there.keys()].sort(), [...kind.values].sort(), 'and each is listed once')
  for (const id of there.values()) await ask(service, 'GET', `${kind.path}/${id}`, { token })
}

test('SIGKILL under creates and deletes of roles and users locks no name and no address, and leaves nothing half', {
  timeout: 600_000,
}, async (t) => {
  const random = freshlySeeded(t)
  const data = folderOf(t)
  let service = await startService(data)
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const roles: Json[] = (await ask(service, 'GET', '/roles?limit=100', { token })).data
  const roleId = roles.find(({ key }) => key === 'planner')._id
  const values = (length: number, of: (i: number) => string): string[] => Array.from({ length }, (_, i) => of(i))
  const kinds: Kind[] = [
    {
      path: '/role',
      list: '/roles',
      field: 'name',
      values: values(NAMES, (i) => `Role ${i}`),
      body: (name) => ({ name, permissions: ['view/hub'] }),
    },
    {
      path: '/user',
      list: '/users',
      field: 'email',
      values: values(ADDRESSES, (i) => `person${i}@example.com`),
      madeMax: MADE_MAX,
      body: (email) => ({ name: 'Person', email, roleId, hubId: [hubId] }),
    },
  ]
  const made = new Map<string, number>()
  let commands = 0
  for (let kill = 0; kill < KILLS; kill++) {
    commands += await churn(service, token, kinds, random, made)
    service = await startService(data)
  }
  t.comment(`${commands} commands under ${KILLS} kills`)
  for (const kind of kinds) await checkFree(t, service, token, kind)
  await until('nothing to be stuck', async () =>
    /waymark_processes_stuck 0/.test((await call(service, 'GET', '//metrics')).text),
  )
})
