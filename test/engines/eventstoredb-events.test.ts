import { randomUUID } from 'node:crypto'
import { convertGrpcEvent } from '@eventstore/db-client/dist/utils/convertGrpcEvent.js'
import streamsPb from '@eventstore/db-client/generated/streams_pb.js'
import { test } from 'tap'
import type { Source } from '../../src/engines/event-log.ts'
import { recordedOf } from '../../src/engines/eventstoredb-log/events.ts'
import { openEventstoredbLog } from '../../src/engines/eventstoredb-log/eventstoredb-log.ts'
import type { RecordedEvent } from '../../src/kernel/event.ts'
import { newEvent } from '../contracts/event-log.ts'
import { eventAnswer } from '../support/eventstoredb/messages.ts'
import { openEventstoredbServer } from '../support/eventstoredb/server.ts'

test('the data of an event comes as the bytes that were appended, also where it is JSON, or should be', async (t) => {
  const server = await openEventstoredbServer()
  const log = await openEventstoredbLog({ url: server.url, newId: randomUUID, now: Date.now })
  const texts = ['{ "weight": 1.0,\n"id": 12345678901234567890, "weight": 2 }', '{"name":"Zoë 🚚"}', '{half', '']
  await log.append(
    'a-1',
    texts.map((text) => ({ ...newEvent(), data: Buffer.from(text), isJson: true })),
    'none',
  )
  const textsOf = (events: RecordedEvent[]): string[] => events.map(({ data }) => Buffer.from(data).toString())
  const followed = async (source: Source): Promise<string[]> => {
    const seen: RecordedEvent[] = []
    for await (const { events } of log.follow(source, undefined, ended.signal)) {
      seen.push(...events)
      if (seen.length === texts.length) break
    }
    return textsOf(seen)
  }
  const ended = new AbortController()
  t.teardown(async () => {
    ended.abort()
    await log.close()
    await server.close()
  })
  t.same(textsOf(await log.read('a-1', 0, 10)), texts)
  t.same(await followed({ stream: 'a-1' }), texts)
  t.same(await followed({ prefixes: ['a-'] }), texts)
})

test('all else of an event is read as the client package reads it', async (t) => {
  const stored = {
    id: randomUUID(),
    stream: `tracker-${'ü'.repeat(90)}`,
    revision: 2 ** 40,
    position: 2 ** 50,
    type: 'ereignis-größe.v1',
    contentType: 'application/json',
    created: 17_643_999_999_999_999n, // as a number, it is a millisecond later
    data: Buffer.from('{}'),
  }
  for (const contentType of ['application/json', 'application/octet-stream'])
    for (const metadata of ['{"actor":"user:Zoë 🚚"}', '{}', 'null', '', 'no JSON']) {
      const bytes = eventAnswer({ ...stored, contentType, metadata: Buffer.from(metadata) }).serializeBinary()
      const read = streamsPb.ReadResp.deserializeBinary(bytes).getEvent()!
      const { event } = convertGrpcEvent(read)
      t.match(recordedOf(read), {
        id: event?.id,
        type: event?.type,
        isJson: event?.isJson,
        metadata: metadata.startsWith('{') ? event?.metadata : {},
        stream: event?.streamId,
        revision: Number(event?.revision),
        position: Number(event?.position?.commit),
        loggedAt: event?.created.getTime(),
      })
    }
  t.equal(recordedOf(new streamsPb.ReadResp.ReadEvent()), undefined, 'a link to an event that is gone')
})
