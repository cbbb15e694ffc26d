import { join } from 'node:path'
import { test } from 'tap'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import type { Fix } from '../../src/cli/trace-file.ts'
import { partitionOf } from '../../src/features/locations/events.ts'
import { folderOf } from '../support/folder-of.ts'
import { realDay } from '../support/real-day.ts'
import { type Service, signUp, startService } from '../support/service.ts'
import { checkDeliveries, checkHistory, checkTransitions, prepare } from '../support/stream-checks.ts'
import { openReceiver } from '../support/webhook-receiver.ts'

/** The most that `--partitions` takes. */
const PARTITIONS = 1_024
const FIXES = 4_000
/** Trackers that each vehicle is taken for, one fix after the other, so that most partitions have some. */
const TRACKERS_PER_VEHICLE = 24
const FRAME = 100

const flagsOf = (partitions: number): string[] => ['--partitions', String(partitions)]

const send = async (service: Service, key: string, fixes: readonly Fix[]): Promise<void> => {
  const gateway = await IngestClient.connect(service.url, key)
  for (let at = 0; at < fixes.length; at += FRAME) await gateway.send(fixes.slice(at, at + FRAME))
  await gateway.drained()
  gateway.close()
  if (gateway.rejected.length > 0) throw new Error(`refused: ${JSON.stringify(gateway.rejected)}`)
}

test('with as many partitions as there may be, all comes out as computed, through a stop and a kill', {
  timeout: 900_000,
}, async (t) => {
  const data = join(folderOf(t), 'data')
  await t.rejects(startService(data, flagsOf(PARTITIONS + 1)), /partitions/, 'there may be no more')
  let service = await startService(data, flagsOf(PARTITIONS))
  t.teardown(() => service.kill())
  const real = await realDay(t, FIXES, Date.now())
  const fixes = real.fixes.map((fix, i) => ({ ...fix, externalId: `${fix.externalId} ${i % TRACKERS_PER_VEHICLE}` }))
  const day = { ...real, fixes }
  const receiver = await openReceiver(t)
  const { token } = await signUp(service)
  const setting = await prepare(service, token, day, receiver)

  const third = Math.ceil(fixes.length / 3)
  await send(service, setting.ingestKey, fixes.slice(0, third))
  t.equal(await service.stop(), 0, 'SIGTERM ends it with 0')
  service = await startService(data, flagsOf(PARTITIONS))
  await send(service, setting.ingestKey, fixes.slice(third, 2 * third))
  await service.kill()
  service = await startService(data, flagsOf(PARTITIONS))
  await send(service, setting.ingestKey, fixes.slice(2 * third))

  const trackers = await checkHistory(t, service, setting, day)
  const used = new Set([...trackers.values()].map((trackerId) => partitionOf(trackerId, PARTITIONS)))
  t.ok(used.size > PARTITIONS / 4, `${trackers.size} trackers are in ${used.size} partitions`)
  const transitions = await checkTransitions(t, service, setting, day, trackers)
  await checkDeliveries(t, receiver, transitions)
})
