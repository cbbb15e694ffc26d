import { test } from 'tap'
import { openTasks } from '../../support/open-tasks.ts'

test('what was done before the record that it names was deleted holds, also of a task that was lost since', async (t) => {
  const { owner, make, hubId, ada, bob, move, at, clock } = await openTasks(t)
  const type = await make('/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [{ name: 'number', type: 'text', required: true }],
  })
  const customer = { id: 'customer', type: 'reference', label: 'Customer', dataTypeId: type._id }
  const flow = await make('/flow', {
    name: 'Customer visit',
    steps: [{ id: 'one', name: 'One', components: [customer] }],
  })
  const taskOfAda = () => make('/task', { flowId: flow._id, title: 'Visit', hubId, assigneeIds: [ada.id] })
  const [own, lost, untimed] = [await taskOfAda(), await taskOfAda(), await taskOfAda()]
  const record = await make('/data', { dataTypeId: type._id, values: { number: 'C-1' } })
  const [started, finished] = [at(60), at(120)]
  clock.advance(300_000)
  t.equal((await owner.call('DELETE', `/data/${record._id}`)).status, 200)
  await move(lost._id, 'assign', { assigneeIds: [bob.id] })
  clock.advance(60_000)

  const components = { customer: record._id.toUpperCase() }
  for (const { _id } of [own, lost]) {
    t.equal((await move(_id, 'start', { at: started }, ada.session)).status, 200)
    t.match(await move(_id, 'finish', { at: finished, components }, ada.session), {
      status: 200,
      body: { data: { state: 'finished' } },
    })
    const { data } = (await owner.call('GET', `/task/${_id}`)).body
    t.match(data, { state: 'finished', finishedBy: ada.id, components: { customer: record._id } })
  }
  const refused = { status: 400, body: { errors: [{ path: '/components/customer' }] } }
  await move(untimed._id, 'start', { at: started }, ada.session)
  t.match(
    await move(untimed._id, 'finish', { components }, ada.session),
    refused,
    'what is done now names what is there',
  )
  t.match(
    await move(untimed._id, 'finish', { at: at(-30), components }, ada.session),
    refused,
    'and what came after it',
  )
  const never = { customer: own._id }
  t.match(await move(untimed._id, 'finish', { at: finished, components: never }, ada.session), refused)
})
