import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type Test } from 'tap'
import { openS3Files, type S3Options } from '../../src/engines/s3-files/s3-files.ts'
import { openS3OfTest } from '../support/s3-server.ts'
import { fileStoreContract } from './file-store.ts'

fileStoreContract('s3-files', { open: openS3OfTest })

/** Options for a store behind a server that answers as it is told. */
const optionsOf = async (t: Test, answer: RequestListener): Promise<S3Options> => {
  const server = createServer(answer).listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const url = `s3://bucket/files?endpoint=http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return { url, credentials: { accessKeyId: 'a', secretAccessKey: 'b' }, timeoutMs: 100 }
}

test('a server that does not answer is down', async (t) => {
  await t.rejects(openS3Files(await optionsOf(t, () => undefined)), { code: 'engine_down' })
})

test('a server that falls silent in the middle of a file is down', async (t) => {
  const options = await optionsOf(t, ({ method }, response) => {
    if (method === 'HEAD') return void response.writeHead(200).end()
    response.writeHead(200, { 'content-length': 10 }).write('begun')
  })
  const store = await openS3Files(options)
  t.teardown(() => store.close())
  const found = await store.get('a/b')
  t.equal(found?.bytes, 10)
  const read = async (): Promise<void> => {
    for await (const piece of found?.stream ?? []) t.equal(String(piece), 'begun')
  }
  await t.rejects(read(), { code: 'engine_down' })
})
