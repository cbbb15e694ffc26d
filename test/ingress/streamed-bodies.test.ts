import { join } from 'node:path'
import { test, type Test } from 'tap'
import { openFileFolder } from '../../src/engines/file-folder/file-folder.ts'
import type { FileStore } from '../../src/engines/file-store.ts'
import { uploadKey } from '../../src/kit/files/attached-file.ts'
import { sendFile } from '../../src/kit/files/send-file.ts'
import { type Upload, Uploads } from '../../src/kit/files/uploads.ts'
import type { Route } from '../../src/kit/http/route.ts'
import { folderOf } from '../support/folder-of.ts'
import { openS3OfTest } from '../support/s3-server.ts'
import { openDoor, rawClient, simpleRoute, waitFor } from './support.ts'
import { until } from '../support/service.ts'

const MIB = 1024 * 1024
const BYTES_MAX = 40 * MIB
const HOLDER = { noun: 'thing', organizationId: 'o', id: '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a' }
const FILE = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6b'

/** A route that stores a file, and one that sends what was stored last. */
const fileRoutes = (files: FileStore): Route[] => {
  const uploads = new Uploads({ files, bytesMax: BYTES_MAX })
  let last: Upload | undefined
  return [
    simpleRoute(
      {
        method: 'POST',
        path: '/files',
        access: 'user',
        rawBody: { contentTypes: ['multipart/form-data'] },
        bodyBytesMax: uploads.bodyBytesMax,
        receive: (request) => uploads.receive(request, HOLDER, { required: ['place'] }),
      },
      async (request) => {
        last = request.body as Upload
        if (last.fields.place === 'fails') throw new Error('the handler fails')
        return { status: 201, body: { data: { id: request.ids.next(), ...last } } }
      },
    ),
    simpleRoute({ path: '/file', access: 'user' }, (request) => {
      const { upload, name, contentType } = last as Upload
      return sendFile(files, request, { _id: FILE, key: uploadKey(HOLDER, upload), name, contentType })
    }),
  ]
}

const keysOf = async (files: FileStore): Promise<string[]> => {
  const keys: string[] = []
  for await (const { key } of files.list('')) keys.push(key)
  return keys
}

const formWith = (place: string, content: Buffer): FormData => {
  const form = new FormData()
  form.append('place', place)
  form.append('file', new File([content], 'größe "1".bin'))
  return form
}

const digits = (length: number): Buffer => Buffer.from(Uint8Array.from({ length }, (_, i) => (i * 7 + (i >> 8)) % 251))

for (const [engine, open] of [
  ['file-folder', (t: Test) => openFileFolder(join(folderOf(t), 'files'))],
  ['s3-files', async (t: Test) => (await openS3OfTest(t)).store],
] as const)
  test(`${engine}: a file goes in and comes out as it is, whole and in parts`, async (t) => {
    const files = await open(t)
    const door = await openDoor(t, { routes: fileRoutes(files) })
    const headers = { authorization: 'Bearer good' }
    const bytes = digits(12 * MIB + 5)
    const url = `${door.url}/api/v3`
    const made = await fetch(`${url}/files`, { method: 'POST', headers, body: formWith('here', bytes) })
    t.equal(made.status, 201)
    t.match(((await made.json()) as { data: object }).data, {
      name: 'größe "1".bin',
      size: bytes.length,
      fields: { place: 'here' },
    })
    const whole = await fetch(`${url}/file`, { headers })
    t.equal(whole.headers.get('content-length'), String(bytes.length))
    t.equal(whole.headers.get('x-content-type-options'), 'nosniff')
    t.match(
      whole.headers.get('content-disposition'),
      /^attachment; .*filename\*=UTF-8''gr%C3%B6%C3%9Fe%20%221%22\.bin$/,
    )
    t.ok(Buffer.from(await whole.arrayBuffer()).equals(bytes))
    const head = await fetch(`${url}/file`, { method: 'HEAD', headers })
    t.same([head.status, head.headers.get('content-length')], [200, String(bytes.length)])
    for (const [range, from, to] of [
      ['bytes=0-0', 0, 0],
      ['bytes=5000000-9000000', 5_000_000, 9_000_000],
      ['bytes=-7', bytes.length - 7, bytes.length - 1],
    ] as const) {
      const part = await fetch(`${url}/file`, { headers: { ...headers, range } })
      t.same([part.status, part.headers.get('content-length')], [206, String(to - from + 1)], range)
      t.ok(Buffer.from(await part.arrayBuffer()).equals(bytes.subarray(from, to + 1)), range)
    }
    const behind = await fetch(`${url}/file`, { headers: { ...headers, range: 'bytes=99999999-' } })
    t.same([behind.status, behind.headers.get('content-range')], [416, `bytes */${bytes.length}`])
    await behind.text()
    const same = await fetch(`${url}/file`, { headers: { ...headers, 'if-none-match': `"${FILE}"` } })
    t.same([same.status, await same.text()], [304, ''])
  })

test('a client that goes away, sends too much or nothing whole leaves nothing', async (t) => {
  const files = await openFileFolder(join(folderOf(t), 'files'))
  const door = await openDoor(t, { routes: fileRoutes(files) })
  const post = (body: FormData) =>
    fetch(`${door.url}/api/v3/files`, { method: 'POST', headers: { authorization: 'Bearer good' }, body })
  t.equal((await post(formWith('here', Buffer.alloc(BYTES_MAX + 1)))).status, 413)
  t.equal((await post(formWith('here', Buffer.alloc(BYTES_MAX + MIB)))).status, 413, 'as its head says')
  t.equal((await post(formWith('fails', digits(MIB)))).status, 500)
  for (const length of ['Content-Length: 5000000', 'Transfer-Encoding: chunked']) {
    const client = await rawClient(t, door)
    const form = '--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n' + 'x'.repeat(600_000)
    const body = length.startsWith('C') ? form : `${form.length.toString(16)}\r\n${form}\r\n`
    client.send(
      `POST /api/v3/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: multipart/form-data; boundary=b\r\n${length}\r\n\r\n${body}`,
    )
    await waitFor(() => client.socket.writableLength === 0, 'the half form to be sent')
    client.socket.destroy()
  }
  const whole = await post(formWith('here', digits(10)))
  t.equal(whole.status, 201)
  await whole.text()
  await waitFor(() => door.lines.length >= 1, 'the failures to be logged')
  await until('the other files to go', async () => (await keysOf(files)).length === 1)
  t.same(
    door.lines.filter(({ level }) => level === 'error').map(({ msg }) => msg),
    ['a request failed unexpectedly'],
    'of the handler that fails alone',
  )
})

test('the same upload under its key again is one file, however its form is written; another is 422', async (t) => {
  const files = await openFileFolder(join(folderOf(t), 'files'))
  const door = await openDoor(t, { routes: fileRoutes(files) })
  const post = (body: FormData) =>
    fetch(`${door.url}/api/v3/files`, {
      method: 'POST',
      headers: { authorization: 'Bearer good', 'idempotency-key': 'k' },
      body,
    })
  const first = await (await post(formWith('here', digits(1_000)))).json()
  t.same(await (await post(formWith('here', digits(1_000)))).json(), first, 'with another boundary')
  t.equal((await keysOf(files)).length, 1)
  for (const other of [formWith('there', digits(1_000)), formWith('here', digits(1_001))]) {
    const answer = await post(other)
    t.equal(answer.status, 422)
    await answer.text()
  }
  t.equal((await keysOf(files)).length, 1)
})

test('a store that is slow holds the client back', async (t) => {
  const folder = await openFileFolder(join(folderOf(t), 'files'))
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => (release = resolve))
  let stored = 0
  const files: FileStore = {
    ...folder,
    put: (key, source, bytesMax) =>
      folder.put(
        key,
        (async function* () {
          for await (const piece of source) {
            await released
            stored += piece.byteLength
            yield piece
          }
        })(),
        bytesMax,
      ),
  }
  const door = await openDoor(t, { routes: fileRoutes(files) })
  const client = await rawClient(t, door)
  const head =
    '--b\r\nContent-Disposition: form-data; name="place"\r\n\r\nx\r\n--b\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n\r\n'
  const tail = '\r\n--b--\r\n'
  const content = digits(32 * MIB)
  client.send(
    `POST /api/v3/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer good\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: ${head.length + content.length + tail.length}\r\n\r\n${head}`,
  )
  for (let at = 0; at < content.length; at += MIB) client.send(content.subarray(at, at + MIB))
  client.send(tail)
  // What the sockets of this machine hold is sent; the rest waits with the client for as long as the store does.
  for (let still = 0, left = -1; still < 20; still++) {
    if (client.socket.writableLength !== left) still = 0
    left = client.socket.writableLength
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  t.ok(client.socket.writableLength > 16 * MIB, `${client.socket.writableLength} bytes wait with the client`)
  t.equal(stored, 0)
  release()
  t.match(await client.until(/201 Created[\s\S]*\}\}/), /201 Created/)
  t.equal(stored, content.length)
})
