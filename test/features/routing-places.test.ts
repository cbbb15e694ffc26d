import { test } from 'tap'
import type { EventLog } from '../../src/engines/event-log.ts'
import { ROUTING_BOUNDS, ROUTING_RESULT_STREAMS } from '../../src/features/routing/views.ts'
import { openIdentity } from '../support/open-identity.ts'

test('a planning for which there is no place leaves nothing in the log, of which a job would be made', async (t) => {
  const { log, over, signup, callerOf } = await openIdentity(t)
  const owner = await signup()
  const hubId = owner.body.data.hubId[0]
  const made = async (path: string, body: object): Promise<string> =>
    (await owner.call('POST', path, body)).body.data._id
  const flowId = await made('/flow', { name: 'Drop', steps: [{ id: 'one', name: 'One', components: [] }] })
  const vehicleIds = [await made('/vehicle', { name: 'Van', hubId })]
  const written: string[] = []
  const watched = new Proxy(log, {
    get: (target, name) => {
      if (name !== 'append') return Reflect.get(target, name, target)
      return (...asked: Parameters<EventLog['append']>) => {
        written.push(asked[0])
        return target.append(...asked)
      }
    },
  })
  const { call } = over(watched)
  const caller = await callerOf(owner)
  const plan = async (): Promise<number> => {
    const taskIds = [await made('/task', { flowId, hubId, title: 'Drop', lat: 52.2, lng: 21 })]
    const body = { hubId, taskIds, vehicleIds, startAt: '2026-01-02T08:00:00Z' }
    return (await call('POST', '/routing', { caller, body })).status
  }
  for (let i = 0; i < ROUTING_BOUNDS.organizationMax; i++) t.equal(await plan(), 202)
  t.ok(written.some((stream) => stream.startsWith(ROUTING_RESULT_STREAMS)))
  written.length = 0
  t.equal(await plan(), 429)
  t.same(written, [])
})
