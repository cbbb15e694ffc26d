import { test } from 'tap'
import { writeBinaryFrame } from '../../../../src/features/locations/ingest/binary-frame-writer.ts'
import { WINDOW_BYTES, WINDOW_FRAMES } from '../../../../src/features/locations/ingest/channel.ts'
import { idFrom } from '../../../../src/kit/commands/ids.ts'
import { ingestKey, openIngest, pointsOf, type TestIngestOptions } from '../../../support/ingest.ts'
import { until } from '../../../support/service.ts'
import { seeded } from '../../../support/random.ts'

const ORG = idFrom('organization', 'a')

const open = async (t: Parameters<typeof openIngest>[0], options?: TestIngestOptions) => {
  const ingest = await openIngest(t, options)
  for (let i = 0; i < 20; i++) ingest.trackers.add(ORG, `bus-${i}`)
  return { ...ingest, client: ingest.connect(ingestKey(ORG)) }
}
let times = Date.now() - 100_000
const fix = (more: object = {}) => ({ externalId: 'bus-1', recordedAt: times++, lat: 52.2, lng: 21, ...more })

test('the window is announced, and acknowledgements are cumulative, one for each flush', async (t) => {
  const { client, logged, refusing } = await open(t, { partitions: 1 })
  t.same(client.messages, [{ type: 'ready', window: WINDOW_FRAMES, windowBytes: WINDOW_BYTES }])
  refusing.hold()
  client.send({ type: 'points', seq: 1, points: [fix()] })
  await client.until(() => refusing.appends.length === 1)
  for (let seq = 2; seq <= 50; seq++) client.send({ type: 'points', seq, points: [fix()] })
  t.equal(client.acked, 0, 'nothing is acknowledged before it is durable')
  refusing.release()
  await client.until(() => client.acked === 50)
  t.same(client.messages.slice(1), [
    { type: 'ack', seq: 1 },
    { type: 'ack', seq: 50 },
  ])
  t.same(
    (await logged())[0].map(({ count }) => count),
    [1, 49],
    'what arrives during an append goes with the next',
  )
})

test('seq may skip, be left out, or be mixed with bare points and lists; it must rise', async (t) => {
  const { client } = await open(t)
  client.send({ type: 'points', seq: 5, points: [fix()] })
  client.send({ type: 'points', points: [fix()] })
  client.send(fix())
  client.send([fix(), fix()])
  client.sendBinary(writeBinaryFrame(0, [fix()]))
  client.send({ type: 'points', points: [] })
  await client.until(() => client.acked === 10)
  client.send({ type: 'points', seq: 10, points: [fix()] })
  t.match(client.over, { code: 4400 })
})

test('what is no message closes with 4400, what is too large with 1009', async (t) => {
  const { connect } = await open(t)
  const codeOf = (message: unknown) => {
    const client = connect(ingestKey(ORG))
    client.send(message)
    return client.over?.code
  }
  for (const message of [
    '',
    'points',
    '{"type":"points","seq":1,"points":[',
    '{"type":"points","points":[{"lat":NaN}]}',
    'null',
    '7',
    '"x"',
    '{}',
    '{"type":"other"}',
    '{"type":7,"lat":1}',
    '{"type":"points"}',
    '{"type":"points","points":{}}',
    '{"type":"points","points":"x"}',
    { type: 'points', seq: 0, points: [] },
    { type: 'points', seq: -1, points: [] },
    { type: 'points', seq: 1.5, points: [] },
    { type: 'points', seq: '1', points: [] },
    { type: 'points', seq: 1e300, points: [] },
  ]) {
    t.equal(codeOf(message), 4400, JSON.stringify(message))
  }
  t.equal(codeOf(`${'['.repeat(100_000)}${']'.repeat(100_000)}`), undefined, 'deep JSON is a list whose point is wrong')
  t.equal(codeOf({ type: 'points', points: Array(10_001).fill(0) }), 1009)
  t.equal(codeOf(Array(10_001).fill(0)), 1009)
  t.equal(codeOf(' '.repeat(10 * 1024 * 1024)), 1009)
  t.equal(codeOf({ type: 'points', points: Array(10_000).fill(0) }), undefined)
})

test('a binary frame that is cut, longer than it says, or garbage closes with 4400; a valid one of too many points with 1009', async (t) => {
  const { connect } = await open(t)
  const frame = writeBinaryFrame(1, [fix({ attributes: { a: 1 } }), fix({ externalId: 'bus-2', speed: 1 })])
  const codeOf = (bytes: Uint8Array<ArrayBuffer>) => {
    const client = connect(ingestKey(ORG))
    client.sendBinary(bytes)
    return client.over?.code
  }
  for (let length = 0; length < frame.length; length++)
    t.equal(codeOf(frame.slice(0, length)), 4400, `cut to ${length}`)
  t.equal(codeOf(new Uint8Array([...frame, 0])), 4400)
  const random = seeded(1)
  for (let round = 0; round < 300; round++) {
    const broken = frame.slice()
    for (let n = 0; n < 4; n++) broken[Math.floor(random() * broken.length)] = Math.floor(random() * 256)
    t.ok([undefined, 4400, 1009].includes(codeOf(broken)))
  }
  const many = writeBinaryFrame(1, [fix()])
  new DataView(many.buffer).setUint32(8, 10_001, true)
  t.equal(codeOf(many), 1009)
})

test('a sender beyond its window is closed with 4429; what was taken is stored all the same', async (t) => {
  const { client, refusing, logged, connect } = await open(t, { partitions: 1 })
  refusing.hold()
  for (let seq = 1; seq <= WINDOW_FRAMES; seq++) client.send({ type: 'points', seq, points: [fix()] })
  t.equal(client.over, undefined)
  client.send({ type: 'points', points: [fix()] })
  t.match(client.over, { code: 4429 })
  const large = connect(ingestKey(ORG))
  const bytes = JSON.stringify({ type: 'points', points: [fix({ attributes: { a: 'x'.repeat(900) } })] }).padEnd(
    1_000_000,
  )
  large.send(bytes)
  large.send(bytes)
  t.equal(large.over, undefined)
  large.send(bytes)
  t.match(large.over, { code: 4429 })
  refusing.release()
  const last = connect(ingestKey(ORG))
  last.send(fix())
  await last.until(() => last.acked === 1)
  t.equal(pointsOf((await logged()).flat()).length, WINDOW_FRAMES + 1 + 1)
})

test('an unknown member of a frame is named, takes none of its points and closes nothing', async (t) => {
  const { client, logged } = await open(t)
  client.send({ type: 'points', seq: 1, points: [fix(), fix()], extra: 1 })
  client.send({ type: 'points', seq: 2, points: [fix()] })
  await client.until(() => client.acked === 2)
  t.match(client.messages[1], { type: 'error', code: 'invalid', message: /extra/ })
  t.same(
    client.rejected.map(({ seq, index, code }) => [seq, index, code]),
    [
      [1, 0, 'invalid'],
      [1, 1, 'invalid'],
    ],
  )
  t.equal(pointsOf((await logged()).flat()).length, 1)
})

test('frames wait for the trackers of the one before, in order, binary ones too; leaving meanwhile loses nothing', async (t) => {
  const { client, trackers, logged, refusing } = await open(t, { partitions: 1 })
  trackers.unknownAtFirst.add('bus-3')
  let found = () => {}
  trackers.gate = new Promise((done) => {
    found = done
  })
  client.send({
    type: 'points',
    points: [fix({ recordedAt: times++, lat: 1 }), fix({ externalId: 'bus-3' }), fix({ externalId: 'nobody' })],
  })
  client.sendBinary(writeBinaryFrame(0, [fix({ lat: 2 })]))
  client.send(fix({ lat: 3, externalId: 'bus-3' }))
  client.send(fix({ lat: 4 }))
  client.close()
  await new Promise((done) => setTimeout(done, 30))
  t.same(refusing.appends, [], 'nothing overtakes')
  found()
  await until('all five', async () => pointsOf((await logged()).flat()).length === 5)
  const one = pointsOf((await logged()).flat()).filter(
    ({ trackerId }) => trackerId === trackers.trackers.get(`${ORG} bus-1`)?.trackerId,
  )
  t.same(
    one.map(({ lat }) => lat),
    [1, 2, 4],
  )
})

test('what waits for trackers counts against the queue of its organization, over all its connections', async (t) => {
  const frame = JSON.stringify({ type: 'points', points: [fix({ externalId: 'new' })] })
  const limits = { organizationBytesMax: frame.length * 5 }
  const { client, connect, trackers, counts } = await open(t, { limits })
  trackers.add(ORG, 'new')
  trackers.unknownAtFirst.add('new')
  let go = (): void => {}
  trackers.gate = new Promise((done) => {
    go = done
  })
  const other = connect(ingestKey(ORG))
  for (let i = 0; i < 3; i++) client.send(frame)
  for (let i = 0; i < 2; i++) other.send(frame)
  t.same([client.over, other.over], [undefined, undefined])
  other.send(frame)
  t.match(other.over, { code: 4429, reason: /queue is full/ })
  client.send(frame)
  t.equal(client.over, undefined, 'what the other one held is free again, but for the frame that it looks up')
  const third = connect(ingestKey(ORG))
  third.send(frame)
  t.match(third.over, { code: 4429 })
  go()
  await client.until(() => client.acked === 4)
  t.ok(counts.accepted + counts.duplicate >= 4)
  client.send(frame)
  await client.until(() => client.acked === 5)
})

test('a frame over several partitions is acknowledged when the last of them is durable', async (t) => {
  const { client, refusing, trackers } = await open(t)
  const { partition } = trackers.known(ingestKey(ORG), undefined, 'bus-1') as { partition: number }
  refusing.refusedStream = `locations-${partition}`
  client.send(Array.from({ length: 20 }, (_, i) => fix({ externalId: `bus-${i}` })))
  await client.until(() => refusing.appends.filter(({ stream }) => stream === `locations-${partition}`).length >= 2)
  t.equal(new Set(refusing.appends.map(({ stream }) => stream)).size, 4)
  t.equal(client.acked, 0)
  refusing.refusedStream = undefined
  await client.until(() => client.acked === 1)
})

test('small frames that come together are submitted together, in the order they came, whoever else sends and whatever is between', async (t) => {
  const { connect, batcher, logged, counts, trackers, refusing } = await open(t, { partitions: 1 })
  for (let i = 0; i < 3; i++) trackers.add(ORG, `own-${i}`)
  let submits = 0
  const { submit } = batcher
  batcher.submit = (...args) => {
    submits++
    return submit.apply(batcher, args)
  }
  const clients = Array.from({ length: 3 }, () => connect(ingestKey(ORG)))
  const sent = clients.map(() => [] as number[])
  const random = seeded(7)
  const START = Date.now() - 1_000_000
  const point = (own: number, more: object = {}) => {
    const recordedAt = START + sent[own].length
    sent[own].push(recordedAt)
    return fix({ externalId: `own-${own}`, recordedAt, ...more })
  }
  let bad = 0
  for (let frame = 0; frame < 900; frame++) {
    const own = Math.floor(frame / 100) % 3
    const kind = frame % 100 < 80 ? 0 : Math.floor(random() * 7)
    if (kind === 1) clients[own].send(Array.from({ length: 40 }, () => point(own)))
    else if (kind === 2) clients[own].send([])
    else if (kind === 3) clients[own].send([fix({ externalId: 'nobody' }), point(own)])
    else if (kind === 4) clients[own].sendBinary(writeBinaryFrame(0, [point(own)]))
    else if (kind === 5) clients[own].send({ type: 'points', points: [fix()], extra: 1 })
    else if (kind === 6) clients[own].send(point(own, { attributes: { a: 'b' } }))
    else clients[own].send({ type: 'points', points: [point(own), point(own)] })
    if (kind === 3 || kind === 5) bad++
  }
  t.equal(refusing.appends.length, 0, 'all of it came before the loop turned')
  for (const client of clients) await client.until(() => client.acked === 300)
  const points = pointsOf((await logged()).flat())
  for (const [own, times] of sent.entries()) {
    const { trackerId } = trackers.trackers.get(`${ORG} own-${own}`) as { trackerId: string }
    t.same(
      points.filter((one) => one.trackerId === trackerId).map(({ recordedAt }) => recordedAt),
      times,
    )
  }
  t.same(counts, { accepted: sent.flat().length, duplicate: 0, rejected: bad })
  t.equal(clients.flatMap(({ rejected }) => rejected).length, bad)
  t.ok(submits < 250, `${submits} for 900 frames`)
  for (const { messages } of clients)
    for (const [at, { type, seq = 0 }] of messages.entries())
      if (type === 'reject')
        t.notOk(
          messages.slice(0, at).some((one) => one.type === 'ack' && (one.seq as number) >= seq),
          'a reject comes before its acknowledgement',
        )
})

test('frames of one turn count by themselves against the window, and repeat points by themselves', async (t) => {
  const { client, counts, logged } = await open(t)
  const point = fix()
  client.send([point, point, fix()])
  client.send([point])
  client.send([fix({ externalId: 'bus-2' }), fix({ externalId: 'bus-2' })])
  await client.until(() => client.acked === 3)
  t.same(counts, { accepted: 5, duplicate: 1, rejected: 0 })
  t.equal(pointsOf((await logged()).flat()).length, 4)
  for (let round = 0; round < 3; round++) {
    for (let frame = 0; frame < WINDOW_FRAMES; frame++) client.send(fix())
    t.equal(client.over, undefined)
    await client.until(() => client.acked === 3 + (round + 1) * WINDOW_FRAMES)
  }
})

test('frames of a turn in which their connection ends, or the queue is full, are stored or not acknowledged', async (t) => {
  const { client, connect, logged } = await open(t, { limits: { organizationPointsMax: 100 } })
  for (let frame = 0; frame < 50; frame++) client.send(fix())
  client.send('nothing')
  t.match(client.over, { code: 4400 })
  await until('what came before is stored', async () => pointsOf((await logged()).flat()).length === 50)
  const full = connect(ingestKey(ORG))
  for (let frame = 0; frame < 101; frame++) full.send(fix())
  await full.until(() => full.over !== undefined)
  t.match(full.over, { code: 4429, reason: /queue is full/ })
  t.equal(full.acked, 0)
})

test('a peer that does not read gets its acknowledgement when its buffer has emptied', async (t) => {
  const { client, refusing } = await open(t)
  client.buffered = 1_000_000
  client.send(fix())
  client.send(fix())
  await client.until(() => refusing.appends.length > 0)
  await new Promise((done) => setTimeout(done, 50))
  t.equal(client.acked, 0)
  client.buffered = 0
  client.drain()
  await client.until(() => client.acked === 2)
  t.same(client.messages.slice(1), [{ type: 'ack', seq: 2 }])
})

test('a door that closes acknowledges what it took and takes nothing more; it is for the restart to close the socket', async (t) => {
  const { client, refusing, batcher } = await open(t, { partitions: 1 })
  refusing.hold()
  client.send({ type: 'points', seq: 1, points: [fix()] })
  await client.until(() => refusing.appends.length === 1)
  const closed = batcher.close(10_000)
  client.send({ type: 'points', seq: 2, points: [fix()] })
  refusing.release()
  await closed
  await client.until(() => client.acked === 1)
  t.equal(client.over, undefined)
})
