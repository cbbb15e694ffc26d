import { test } from 'tap'
import { HUB, near, openRoutingWorld } from '../support/routing-world.ts'

test('a route is changed beside that of somebody who has lost the hub, which names nobody new', async (t) => {
  const { hubId, send, make, person, tasks } = await openRoutingWorld(t)
  const other = await make('/hub', { name: 'Other', ...HUB })
  const [ada, bob] = await Promise.all([person('ada'), person('bob')])
  const [one, two, three] = await tasks([near(), near(), near()])
  const van = await make('/vehicle', { name: 'Van', hubId })
  const truck = await make('/vehicle', { name: 'Truck', hubId })
  const of = (vehicle: { _id: string }, userId: string, ...ids: string[]) => ({
    ...{ vehicleId: vehicle._id, userId },
    visits: ids.map((taskId) => ({ taskId })),
  })
  const plan = await make('/routing-result', { hubId, routes: [of(van, ada.id, one), of(truck, bob.id, two)] })
  for (const { id } of [ada, bob]) await send('PATCH', `/user/${id}`, { hubId: [other._id] })
  const path = `/routing-result/${plan._id}`
  const changed = await send('PATCH', path, { routes: [of(van, ada.id, one), of(truck, bob.id, two, three)] })
  t.equal(changed.status, 200, changed.text)
  const fresh = await make('/routing-result', { hubId, routes: [] })
  await send('DELETE', path)
  const refused = await send('PATCH', `/routing-result/${fresh._id}`, { routes: [of(van, ada.id, one)] })
  t.match(refused, { status: 400, json: { errors: [{ path: '/routes/0/userId' }] } })
})
