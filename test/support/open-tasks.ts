import type { Test } from 'tap'
import { openIdentity, PASSWORD, type Session } from './open-identity.ts'

export const FLOW = {
  name: 'Round',
  steps: [
    {
      id: 'one',
      name: 'One',
      components: [
        { id: 'receiver', type: 'text', required: true },
        { id: 'parcels', type: 'number', min: 0, default: 1 },
        { id: 'customer', type: 'text', readOnly: true },
        { id: 'place', type: 'coordinate' },
      ],
    },
  ],
}

/** An owner, two field users, two hubs, a team and a flow. */
export const openTasks = async (t: Test) => {
  const world = await openIdentity(t)
  const owner = await world.signup()
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  const make = async (path: string, body: object, by: Session = owner): Promise<any> => {
    const answer = await by.call('POST', path, body)
    if (answer.status !== 201) throw new Error(`${path} ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }
  const [hubId] = owner.body.data.hubId as string[]
  const other = (await make('/hub', { name: 'Other', lat: 50, lng: 20 }))._id as string
  const roleId = await world.roleId(owner, 'fieldUser')
  const person = async (name: string, hubs: string[]) => {
    const email = `${name}.${owner.email}`
    const { _id } = await make('/user', { name, email, password: PASSWORD, roleId, hubId: hubs })
    return { id: _id as string, session: await world.login(email) }
  }
  const [ada, bob] = [await person('ada', [hubId]), await person('bob', [hubId, other])]
  const flow = await make('/flow', FLOW)
  const task = (body: object = {}) => make('/task', { flowId: flow._id, title: 'Deliver', hubId, ...body })
  const move = (id: string, type: string, body: object = {}, by: Session = owner) =>
    by.call('POST', `/task/${id}/${type}`, body)
  const at = (seconds: number) => new Date(world.clock.now() + seconds * 1000).toISOString()
  return { ...world, owner, make, hubId, other, ada, bob, flow, task, move, at }
}
