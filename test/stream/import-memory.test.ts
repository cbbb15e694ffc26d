import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { MemoryWatch } from '../support/memory-watch.ts'
import { ask, call, signUp, startService } from '../support/service.ts'

const FILE_BYTES = 60 * 1024 * 1024
const POSITIONS = 1_000
/** The body once as it came and once for the worker, and what the geofences then take: 340 to 480. Parsed as a whole it was 1.6 GB. */
const GROWTH_MB_MAX = 600

/** A circle of many positions, as text. */
const round = (i: number): string => {
  const [lng, lat] = [(i % 300) - 150 + 0.1, (Math.floor(i / 300) % 100) - 50 + 0.1]
  const positions = Array.from({ length: POSITIONS }, (_, n) => {
    const angle = (2 * Math.PI * n) / POSITIONS
    return `[${(lng + 0.4 * Math.cos(angle)).toFixed(14)},${(lat + 0.4 * Math.sin(angle)).toFixed(14)}]`
  })
  const geometry = `{"type":"Polygon","coordinates":[[${[...positions, positions[0]].join()}]]}`
  return `{"type":"Feature","properties":{"name":"n${i}"},"geometry":${geometry}}`
}

const fileOf = (bytesMax: number): { body: Buffer; features: number } => {
  const features: string[] = []
  for (let bytes = 0; bytes < bytesMax; ) bytes += features[features.push(round(features.length)) - 1].length + 1
  return { body: Buffer.from(`{"type":"FeatureCollection","features":[${features}]}`), features: features.length }
}

test('a file of 60 MB is imported in a fraction of the memory that it takes when it is parsed', {
  timeout: 600_000,
}, async (t) => {
  // Made first: it takes a slow machine longer than a connection may idle.
  const { body, features } = fileOf(FILE_BYTES)
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const { _id } = (await ask(service, 'POST', '/geofence-group', { token, body: { name: 'g' } })).data
  const path = `/geofences/import?geofenceGroupId=${_id}`
  const feature = JSON.parse(round(0))
  await ask(service, 'POST', path, { token, body: { type: 'FeatureCollection', features: [feature] } })
  const watch = new MemoryWatch(service.process.pid)
  const { json } = await call(service, 'POST', path, { token, body })
  watch.end(t, GROWTH_MB_MAX)
  t.match(json.data, { created: features, rejected: [], rejectedTotal: 0 })
})
