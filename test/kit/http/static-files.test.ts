import { writeFileSync } from 'node:fs'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { request } from 'undici'
import { test } from 'tap'
import { staticFiles } from '../../../src/kit/http/static-files.ts'
import { openDoor } from '../../ingress/support.ts'
import { folderOf } from '../../support/folder-of.ts'

const SCRIPT = 'export const words = "one two three"\n'.repeat(100)

test('built files are sent compressed to who takes it, whole or in part, and once', async (t) => {
  const folder = folderOf(t)
  writeFileSync(`${folder}/app-1a2b.js`, SCRIPT)
  writeFileSync(`${folder}/app-1a2b.js.br`, brotliCompressSync(SCRIPT))
  writeFileSync(`${folder}/app-1a2b.js.gz`, gzipSync(SCRIPT))
  writeFileSync(`${folder}/dot-9.png`, 'not compressed')
  const routes = [staticFiles({ folder, path: '/assets', operationId: 'getAsset', headers: { 'x-here': 'yes' } })]
  const door = await openDoor(t, { routes })
  const get = async (name: string, headers: { [name: string]: string } = {}) => {
    const answer = await request(`${door.url}/assets/${name}`, { headers })
    return { status: answer.statusCode, headers: answer.headers, body: Buffer.from(await answer.body.arrayBuffer()) }
  }

  const plain = await get('app-1a2b.js')
  t.equal(plain.body.toString(), SCRIPT)
  t.match(plain.headers, {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    vary: 'Accept-Encoding',
    'x-here': 'yes',
  })
  t.notOk(plain.headers['content-encoding'])
  for (const [accepted, coding] of [
    ['gzip, deflate, br', 'br'],
    ['GZIP', 'gzip'],
    ['br;q=0, gzip;q=0.5', 'gzip'],
    ['br;q=0', undefined],
    ['brx', undefined],
  ] as const) {
    const answer = await get('app-1a2b.js', { 'accept-encoding': accepted })
    t.equal(answer.headers['content-encoding'], coding, accepted)
    const of = { br: brotliCompressSync(SCRIPT), gzip: gzipSync(SCRIPT), none: Buffer.from(SCRIPT) }
    t.same(answer.body, of[coding ?? 'none'], `${accepted}: its bytes`)
    if (coding !== undefined) t.not(answer.headers.etag, plain.headers.etag, 'other bytes have another tag')
  }
  t.notOk((await get('dot-9.png', { 'accept-encoding': 'br' })).headers['content-encoding'])

  const etag = String(plain.headers.etag)
  t.equal((await get('app-1a2b.js', { 'if-none-match': etag })).status, 304)
  t.equal((await get('app-1a2b.js', { 'if-none-match': '"other"' })).status, 200)
  const part = await get('app-1a2b.js', { range: 'bytes=7-11', 'accept-encoding': 'br' })
  t.equal(part.status, 206)
  t.equal(part.body.toString(), SCRIPT.slice(7, 12))
  t.equal(part.headers['content-range'], `bytes 7-11/${SCRIPT.length}`)
  t.equal((await get('app-1a2b.js', { range: 'bytes=-5' })).body.toString(), SCRIPT.slice(-5))
  t.equal((await get('app-1a2b.js', { range: `bytes=${SCRIPT.length}-` })).status, 416)

  for (const name of ['none.js', 'app-1a2b.js.br', '..%2Fetc', '%2e%2e', 'toString'])
    t.equal((await get(name)).status, 404, name)
})
