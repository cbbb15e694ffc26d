import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { openSocket } from '../../test/support/open-socket.ts'
import { ask, type Service, signUp, startService, until } from '../../test/support/service.ts'
import { flagsOf, openServers } from '../support/stand-ins.ts'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { FLEET, option } from './fresh-service.ts'
import { Sampled } from './sampled.ts'

/**
 * Two whole processes on the same servers, a dashboard at each, and devices at each: prints the time from the recording
 * of a position until it is received at the process that took it and, in the same run, at the other one. Usage: node
 * dist/bench/load/two-nodes.js [--seconds 30] [--trackers 64] [--pps 100] [--partitions 16]
 */
const seconds = option('seconds', 30)
const trackers = option('trackers', 64)
const pointsPerSecond = option('pps', 100)
const partitions = option('partitions', 16)

/** Shortest time between two messages to a dashboard, as the live view accepts it. */
const INTERVAL_MS = 20
const WARMUP_MS = 5_000

/** A device sends its points through one process, which its name tells. */
const nameOf = (door: number, tracker: number): string => `door-${door}-${tracker}`

const pointOf = (door: number, tracker: number): { externalId: string; recordedAt: number } => {
  const recordedAt = Date.now()
  const lat = FLEET.south + ((tracker * 0.618034 + recordedAt / 1e8) % 1)
  return { externalId: nameOf(door, tracker), recordedAt, ...{ lat, lng: FLEET.west + tracker / trackers } }
}

/** Sends a point of one tracker after the other at its pace until it is over; answers the number acknowledged. */
const sendThrough = async (service: Service, door: number, key: string, isOver: () => boolean): Promise<number> => {
  const client = await IngestClient.connect(service.url, key)
  const everyMs = 2_000 / pointsPerSecond // half of them go through each process
  const begunMs = performance.now()
  let sent = 0
  for (; !isOver(); sent++) {
    await client.send([pointOf(door, sent % trackers)])
    const restMs = begunMs + (sent + 1) * everyMs - performance.now()
    await new Promise((resume) => setTimeout(resume, Math.max(0, restMs)))
  }
  await client.drained()
  client.close()
  return sent
}

const run = async (folder: string): Promise<void> => {
  const servers = await openServers(folder, {})
  const flags = [...flagsOf(servers.urls), '--keys', join(folder, 'keys.json'), '--partitions', String(partitions)]
  const services: Service[] = []
  try {
    for (const name of ['a', 'b']) services.push(await startService(join(folder, name), flags))
    const { token } = await signUp(services[0], 'Two nodes')
    const body = { name: 'load', autoCreate: true }
    const { key } = (await ask(services[0], 'POST', '/ingest-key', { token, body })).data
    await measure(services, token, key)
  } finally {
    await Promise.all(services.map((service) => service.kill()))
    await servers.close()
  }
}

const measure = async (services: readonly Service[], token: string, key: string): Promise<void> => {
  const all = services.flatMap((_, door) => Array.from({ length: trackers }, (_, tracker) => pointOf(door, tracker)))
  await ask(services[0], 'POST', '/location-history/bulk', { token: key, body: { points: all } })
  const listed = async (): Promise<number> => (await ask(services[1], 'GET', '/trackers?limit=1', { token })).total
  await until('trackers', async () => (await listed()) === all.length)
  const { data } = await ask(services[1], 'GET', `/trackers?limit=${all.length}`, { token })
  const doorOf = new Map<string, number>(
    (data as { _id: string; externalId: string }[]).map(({ _id, externalId }) => [
      _id,
      Number(externalId.split('-')[1]),
    ]),
  )
  const delays = { same: new Sampled(), other: new Sampled() }
  let isMeasured = false
  for (const [node, service] of services.entries()) {
    const { socket, send } = await openSocket(service, 'live', token)
    socket.addEventListener('message', ({ data }) => {
      const now = Date.now()
      const message = JSON.parse(String(data))
      if (!isMeasured || message.type !== 'positions') return
      for (const { trackerId, recordedAt } of message.positions)
        delays[doorOf.get(trackerId) === node ? 'same' : 'other'].add(now - Date.parse(recordedAt))
    })
    send({ type: 'subscribe', id: 's', channels: ['positions'], interval: INTERVAL_MS })
  }
  let isOver = false
  const sending = services.map((service, door) => sendThrough(service, door, key, () => isOver))
  await new Promise((resume) => setTimeout(resume, WARMUP_MS))
  isMeasured = true
  await new Promise((resume) => setTimeout(resume, seconds * 1_000))
  isOver = true
  const sent = await Promise.all(sending)
  const [same, other] = [delays.same.percentiles(), delays.other.percentiles()]
  process.stdout.write(`${sent.join(' and ')} points; device to dashboard, ms\n`)
  process.stdout.write(`at the same process: ${JSON.stringify(same)}\nat the other process: ${JSON.stringify(other)}\n`)
  process.stdout.write(`p99, other against same: ${(other.p99 / same.p99).toFixed(2)}\n`)
}

const folder = mkdtempSync(join(tmpdir(), 'waymark-two-nodes-'))
process.stdout.write(`${cpus().length} × ${cpus()[0].model}, Node ${process.version}\n`)
try {
  await run(folder)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
