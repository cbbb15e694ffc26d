import { test } from 'tap'
import { isBeatOver } from '../../../../src/features/locations/ingest/beat.ts'
import { openIngest, ingestKey } from '../../../support/ingest.ts'
import { idFrom } from '../../../../src/kit/commands/ids.ts'

test('a beat is over once nothing comes and the loop is mostly idle, and at last in any case', async (t) => {
  t.ok(isBeatOver({ elapsedMs: 2, busyMs: 0.6, hasCome: false }), 'senders wait for acknowledgements')
  t.notOk(isBeatOver({ elapsedMs: 2, busyMs: 0.6, hasCome: true }), 'more may come')
  t.notOk(isBeatOver({ elapsedMs: 2, busyMs: 1, hasCome: false }), 'the loop is busy')
  t.ok(isBeatOver({ elapsedMs: 4, busyMs: 1, hasCome: false }), 'it was')
  t.ok(isBeatOver({ elapsedMs: 10, busyMs: 10, hasCome: true }))
})

test('points of every beat are appended, whatever came while the one before was under way', async (t) => {
  const { connect, trackers, logged } = await openIngest(t, { partitions: 2 })
  const organizationId = idFrom('organization', 'a')
  for (let i = 0; i < 8; i++) trackers.add(organizationId, `bus-${i}`)
  const client = connect(ingestKey(organizationId))
  for (let sent = 1; sent <= 30; sent++) {
    client.send({ externalId: `bus-${sent % 8}`, recordedAt: Date.now() - 60_000 + sent, lat: 50, lng: 21 })
    // In turn one frame that waits for the acknowledgement before it, and one that comes on its heels.
    if (sent % 2 === 0) await client.until(() => client.acked === sent)
  }
  const batches = (await logged()).flat()
  t.equal(
    batches.reduce((points, { count }) => points + count, 0),
    30,
  )
})
