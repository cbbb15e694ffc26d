import { test } from 'tap'
import { until } from '../../support/service.ts'
import { openOffice } from './open-office.ts'

test('a partition that another process took and gave back is loaded again, though no transition comes', async (t) => {
  const office = await openOffice(t)
  const { ask, automate, begin, ended, flow, hubId } = office
  const { _id } = await automate({
    ...{ event: 'onTaskCreated', automationType: 'updateTask', rules: { fields: { 'task.flowId': flow._id } } },
    automationDetails: { components: { count: 7 } },
  })
  const lost: number[] = []
  const first = await begin()
  first.onLost = (partition) => {
    lost.push(partition)
    void first.load(partition)
  }
  const second = await begin()
  await second.close()

  await ask('POST', '/task', { flowId: flow._id, hubId, title: 'Task' })
  const [run] = await ended(_id, 1)
  t.equal(run.status, 'succeeded')
  t.same(lost, [0], 'it was noticed once')
  await first.close()
})

test('a partition whose stored runs became those of another process is loaded again at the next store', async (t) => {
  const office = await openOffice(t)
  const first = await office.begin()
  const lost: number[] = []
  first.onLost = (partition) => lost.push(partition)
  const second = await office.begin()
  await second.close()
  await until('the loss to be noticed', () => {
    office.clock.advance(5_000)
    return lost.length > 0
  })
  t.same(lost, [0])
  await first.close()
})
