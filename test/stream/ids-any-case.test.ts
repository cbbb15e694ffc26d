import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { ask, type Json, signUp, startService, until } from '../support/service.ts'

const upper = (id: string): string => id.toUpperCase()

test('an id is taken in any case, as some phones make them, and kept in lower case', {
  timeout: 300_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token, hubId } = await signUp(service)
  const send = async (method: string, path: string, body?: Json, by = token): Promise<Json> =>
    (await ask(service, method, path, { token: by, body })).data
  const group = await send('POST', '/geofence-group', { name: 'Depots' })
  const circle = { center: { lat: 52, lng: 21 }, radius: 100 }
  const fence = await send('POST', '/geofence', { name: 'West', geofenceGroupId: upper(group._id), ...circle })
  t.equal(fence.geofenceGroupId, group._id)
  const moved = await send('PATCH', `/geofence/${upper(fence._id)}`, { geofenceGroupId: upper(group._id) })
  t.equal(moved.geofenceGroupId, group._id)
  const feature = {
    type: 'Feature',
    properties: { name: 'East', radius: 50 },
    geometry: { type: 'Point', coordinates: [22, 52] },
  }
  const file = { type: 'FeatureCollection', features: [feature] }
  t.match(await send('POST', `/geofences/import?geofenceGroupId=${upper(group._id)}`, file), { created: 1 })
  t.equal((await send('GET', `/geofences?geofenceGroupId=${group._id}`)).length, 2)

  const tracker = await send('POST', '/tracker', { name: 'Van', hubId: upper(hubId) })
  const at = Date.now() - 60_000
  const points = [0, 1].map((i) => ({
    recordedAt: at + i * 1000,
    lat: 52,
    lng: 21,
    trip: i === 0 ? 'start' : 'finish',
  }))
  await send('POST', '/location-history/bulk', { points }, tracker.deviceKey)
  const backtest = () =>
    send('POST', `/geofence/${upper(fence._id)}/backtest`, {
      from: at,
      to: at + 60_000,
      trackerIds: [upper(tracker._id)],
    })
  await until('the points', async () => (await backtest()).length === 1)
  await until('the trip', async () => (await send('GET', '/trips')).length === 1)
  const [trip] = await send('GET', '/trips')
  t.equal((await send('GET', `/trip/${upper(trip._id)}`))._id, trip._id)

  const share = await send('POST', '/share', { trackerId: upper(tracker._id), expiresAt: Date.now() + 3_600_000 })
  t.equal(share.trackerId, tracker._id)
  const [flow] = await send('GET', '/flows')
  const task = await send('POST', '/task', { flowId: upper(flow._id), title: 'Parcel', hubId: upper(hubId) })
  t.equal((await send('POST', '/share', { taskId: upper(task._id) })).taskId, task._id)

  const rules = async (event: string, fields: Json): Promise<Json> => {
    const automationDetails = { url: 'https://example.com/hook' }
    const body = { name: event, event, automationType: 'webhook', automationDetails, rules: { fields } }
    return (await send('POST', '/automation', body)).rules
  }
  const entry = await rules('onGeofenceEntry', { geofenceGroupId: upper(group._id), 'tracker.hubId': upper(hubId) })
  t.strictSame(entry.fields, { geofenceGroupId: group._id, 'tracker.hubId': hubId })
  t.strictSame(entry.schema.properties.geofenceGroupId, { const: group._id })
  const texts = { 'task.title': 'ABC', 'old.task.state': 'new', 'task.components.code': upper(hubId) }
  const assigned = await rules('onTaskAssigned', { ...texts, 'old.task.hubId': upper(hubId) })
  t.strictSame(assigned.fields, { ...texts, 'old.task.hubId': hubId }, 'a text stays as it is')
})
