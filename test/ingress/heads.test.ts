import { type Test, test } from 'tap'
import { type Door, openDoor, rawClient, simpleRoute } from './support.ts'

/** Everything that comes back for these bytes, until the server closes. */
const answerTo = async (t: Test, door: Door, bytes: string): Promise<string> => {
  const client = await rawClient(t, door)
  client.send(bytes)
  return client.closed
}

const openCounting = async (t: Test): Promise<{ door: Door; handled: string[] }> => {
  const handled: string[] = []
  const counting = (method: 'GET' | 'POST', path: string) =>
    simpleRoute({ method, path, ...(method === 'POST' ? { rawBody: { contentTypes: ['*/*'] } } : {}) }, async () => {
      handled.push(`${method} ${path}`)
      return { body: { data: path } }
    })
  const door = await openDoor(t, {
    routes: [counting('POST', '/first'), counting('GET', '/second')],
    channels: [{ path: '/live', accepts: ['user'], open: () => t.fail('opened') as never }],
  })
  return { door, handled }
}

const SECOND = 'GET /api/v3/second HTTP/1.1\r\nHost: x\r\n\r\n'

test('a request whose length is not certain is answered 400 in JSON, once, and its connection closed', async (t) => {
  const { door, handled } = await openCounting(t)
  const refused = async (headers: string, body: string, message: RegExp): Promise<void> => {
    const text = await answerTo(t, door, `POST /api/v3/first HTTP/1.1\r\nHost: x\r\n${headers}\r\n\r\n${body}`)
    const [head, answer] = text.split('\r\n\r\n')
    t.match(head, /^HTTP\/1\.1 400 /, headers)
    t.match(head, /\r\nconnection: close\r\n/i, headers)
    t.match(head, /\r\ncontent-type: application\/json/i, headers)
    t.match(JSON.parse(answer), { status: false, code: 'invalid', message }, headers)
    t.equal(text.match(/HTTP\/1\.1/g)?.length, 1, `one answer: ${headers}`)
  }
  await refused('Content-Length: 5\r\nContent-Length: 46', `hello${SECOND}`, /several content-length/)
  await refused('Content-Length: 46\r\nContent-Length: 5', `hello${SECOND}`, /several content-length/)
  await refused('Content-Length: 5\r\nContent-Length: 05', 'hello', /several content-length/)
  // Later versions of the server library refuse it themselves, in their own words.
  const hosts = await answerTo(
    t,
    door,
    'POST /api/v3/first HTTP/1.1\r\nHost: x\r\nHost: y\r\nContent-Length: 5\r\n\r\nhello',
  )
  t.match(hosts, /^HTTP\/1\.1 400 /, 'two hosts')
  t.match(hosts, /several host|Bad Request/, 'two hosts')
  await refused('Content-Length: 5, 5', 'hello', /number of bytes/)
  await refused('Content-Length: +5', 'hello', /number of bytes/)
  await refused('Content-Length: ', `hello${SECOND}`, /number of bytes/)
  await refused('Content-Length: 0x5', 'hello', /number of bytes/)
  await refused('Content-Length: -1', 'hello', /number of bytes/)
  await refused('Content-Length: 99999999999999999999', 'hello', /number of bytes/)
  const chunks = '5\r\nhello\r\n0\r\n\r\n'
  await refused('Transfer-Encoding: gzip', chunks, /must be chunked/)
  await refused('Transfer-Encoding: identity', chunks, /must be chunked/)
  await refused('Transfer-Encoding: ', `${chunks}${SECOND}`, /must be chunked/)
  await refused('Transfer-Encoding: gzip, chunked', chunks, /must be chunked/)
  await refused('Transfer-Encoding: chunked\r\nTransfer-Encoding: identity', chunks, /several transfer-encoding/)
  t.same(handled, [], 'neither the request nor what was hidden behind it')

  for (const headers of ['Content-Length: 5\r\nContent-Length: 5', 'Transfer-Encoding: Chunked']) {
    const client = await rawClient(t, door)
    const body = headers.startsWith('Content') ? 'hello' : chunks
    client.send(`POST /api/v3/first HTTP/1.1\r\nHost: x\r\nContent-Type: text/plain\r\n${headers}\r\n\r\n${body}`)
    t.match(await client.until(/\r\n\r\n.+/), /^HTTP\/1\.1 200 /, headers)
  }
  t.same(handled, ['POST /first', 'POST /first'])
})

test('no upgrade where the length is not certain', async (t) => {
  const { door } = await openCounting(t)
  const text = await answerTo(
    t,
    door,
    'GET /api/v3/live HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n',
  )
  t.match(text, /^HTTP\/1\.1 400 [\s\S]*several content-length/)
})

test('what the parser of the server library decides by itself never reaches a handler', async (t) => {
  const { door, handled } = await openCounting(t)
  const both = `POST /api/v3/first HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${SECOND}`
  t.match(await answerTo(t, door, both), /^HTTP\/1\.1 400 /, 'both lengths')
  t.match(await answerTo(t, door, SECOND.replace('1.1', '1.0')), /^HTTP\/1\.1 505 /, 'HTTP/1.0')
  t.match(await answerTo(t, door, SECOND.replaceAll('\r\n', '\n')), /^HTTP\/1\.1 [45]0[05] /, 'bare line feeds')
  t.same(handled, [])
})

test('headers that are too large are answered 431 in JSON', async (t) => {
  const { door, handled } = await openCounting(t)
  const withCookie = (bytes: number): string => SECOND.replace('\r\n\r\n', `\r\nCookie: ${'c'.repeat(bytes)}\r\n\r\n`)
  const client = await rawClient(t, door)
  client.send(withCookie(15 * 1024))
  t.match(await client.until(/\r\n\r\n.+/), /^HTTP\/1\.1 200 /)
  const text = await answerTo(t, door, withCookie(17 * 1024))
  t.match(text, /^HTTP\/1\.1 431 Request Header Fields Too Large\r\n[\s\S]*"code":"too_large"/)
  t.match(await answerTo(t, door, withCookie(40 * 1024)), /^HTTP\/1\.1 431 /, 'by the server library')
  t.same(handled, ['GET /second'])
})
