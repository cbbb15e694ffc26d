import { randomBytes } from 'node:crypto'
import sharedPb from '@eventstore/db-client/generated/shared_pb.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import { test } from 'tap'
import type { ExpectedRevision } from '../../src/engines/event-log.ts'
import { encodeAppend } from '../../src/engines/eventstoredb-log/append-request.ts'
import type { NewEvent } from '../../src/kernel/event.ts'

const ID = '00000000-0000-4000-8000-0000000000a1'

const eventOf = (bytes: number, more: Partial<NewEvent> = {}): NewEvent => ({
  id: `0f8fad5b-d9cb-469f-a165-${bytes.toString(16).padStart(12, '0')}`,
  type: 'pointsRecorded.v1',
  data: new Uint8Array(randomBytes(bytes)),
  isJson: false,
  metadata: {},
  ...more,
})

/** The same request as the client package encodes it. */
const asGenerated = (stream: string, events: readonly NewEvent[], expected: ExpectedRevision): Buffer => {
  const options = new streamsPb.BatchAppendReq.Options()
  options.setStreamIdentifier(new sharedPb.StreamIdentifier().setStreamName(Buffer.from(stream)))
  if (expected === 'any') options.setAny(new sharedPb.Empty())
  else if (expected === 'none') options.setNoStream(new sharedPb.Empty())
  else options.setStreamPosition(String(expected))
  const messages = events.map(({ id, type, data, isJson, metadata }) => {
    const message = new streamsPb.BatchAppendReq.ProposedMessage()
      .setId(new sharedPb.UUID().setString(id))
      .setData(data)
      .setCustomMetadata(Buffer.from(JSON.stringify(metadata)))
    message.getMetadataMap().set('type', type)
    message.getMetadataMap().set('content-type', isJson ? 'application/json' : 'application/octet-stream')
    return message
  })
  const request = new streamsPb.BatchAppendReq().setCorrelationId(new sharedPb.UUID().setString(ID))
  return Buffer.from(request.setOptions(options).setProposedMessagesList(messages).setIsFinal(true).serializeBinary())
}

test('an append is encoded as the client package encodes it', async (t) => {
  // Lengths on both sides of one more byte for them, of the event and of its data.
  const sizes = [1, 20, 127, 128, 129, 16_250, 16_383, 16_384, 262_144]
  for (const expected of ['any', 'none', 0, 127, 128, 2 ** 40] as const)
    for (const size of sizes) {
      const events = [eventOf(size)]
      t.ok(encodeAppend(ID, 'locations-7', events, expected).equals(asGenerated('locations-7', events, expected)))
    }
  const events = [
    eventOf(90, { isJson: true, metadata: { actor: 'user:Zoë 🚚', organizationId: 'o'.repeat(300) } }),
    eventOf(5_000, { type: 'ereignis-größe.v1' }),
    ...sizes.map((size) => eventOf(size, { isJson: size % 2 === 0 })),
  ]
  const stream = `tracker-${'ü'.repeat(90)}`
  t.ok(encodeAppend(ID, stream, events, 3).equals(asGenerated(stream, events, 3)), 'several events, texts beyond ASCII')
})

test('an event without data keeps its place', async (t) => {
  const events = [eventOf(0), eventOf(3)]
  const [first, second] = streamsPb.BatchAppendReq.deserializeBinary(
    encodeAppend(ID, 's', events, 'any'),
  ).getProposedMessagesList()
  t.equal(first.getData_asU8().byteLength, 0)
  t.same(Buffer.from(second.getData_asU8()), Buffer.from(events[1].data))
})
