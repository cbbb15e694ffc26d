import type { Test } from 'tap'
import { folderOf } from './folder-of.ts'
import { seeded } from './random.ts'
import { ask, call, type Json, signUp, startService, until } from './service.ts'

export const HUB = { lat: 52.2, lng: 21 }
export const PASSWORD = 'Correct-horse-8-battery'

/** A service with a hub, people, tasks and their plans. */
export const openRoutingWorld = async (t: Test, flags: string[] = []) => {
  const service = await startService(folderOf(t), flags)
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const send = (method: string, path: string, body?: Json, as = token) =>
    call(service, method, path, { token: as, body })
  const make = async (path: string, body: Json): Promise<Json> =>
    (await ask(service, 'POST', path, { token, body })).data
  const get = async (path: string): Promise<Json> => (await ask(service, 'GET', path, { token })).data
  const roles = await get('/roles')
  const roleId = roles.find(({ key }: Json) => key === 'fieldUser')._id
  const person = async (name: string) => {
    const email = `${name}.${process.pid}.${Math.floor(random() * 1e9)}@example.com`
    const user = await make('/user', { name, email, password: PASSWORD, roleId, hubId: [hubId] })
    const login = await ask(service, 'POST', '/auth/login', { body: { email, password: PASSWORD } })
    return { id: user._id as string, token: login.token as string }
  }
  const flow = await make('/flow', { name: 'Round trip', steps: [{ id: 'one', name: 'One', components: [] }] })
  const tasks = async (bodies: Json[]): Promise<string[]> => {
    const ids: string[] = []
    for (let from = 0; from < bodies.length; from += 500) {
      const part = bodies.slice(from, from + 500).map((body) => ({ flowId: flow._id, hubId, title: 'Visit', ...body }))
      const answer = await ask(service, 'POST', '/tasks/bulk', { token, body: { tasks: part } })
      if (answer.data.rejected.length > 0) throw new Error(JSON.stringify(answer.data.rejected[0]))
      ids.push(...answer.data.created)
    }
    return ids
  }
  const planned = async (id: string): Promise<Json> => {
    await until('a plan', async () => (await get(`/routing-result/${id}`)).state !== 'planning')
    return get(`/routing-result/${id}`)
  }
  return { service, token, hubId, send, make, get, person, tasks, planned }
}

const random = seeded(11)
/** A place around the hub. */
export const near = () => ({ lat: HUB.lat + random() * 0.2, lng: HUB.lng + random() * 0.2 })
