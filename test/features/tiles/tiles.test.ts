import { readFileSync, writeFileSync } from 'node:fs'
import { gunzipSync } from 'node:zlib'
import { zxyToTileId } from 'pmtiles'
import { test } from 'tap'
import { request } from 'undici'
import { tileRoutes } from '../../../src/features/tiles/api.ts'
import { openBaseMap, tileIdOf } from '../../../src/features/tiles/base-map.ts'
import { openDoor } from '../../ingress/support.ts'
import { folderOf } from '../../support/folder-of.ts'

const SHIPPED = 'src/features/tiles/base.pmtiles'

test('tiles are numbered as the format numbers them', async (t) => {
  let compared = 0
  for (let z = 0; z <= 6; z++)
    for (let x = 0; x < 2 ** z; x++)
      for (let y = 0; y < 2 ** z; y++) {
        if (tileIdOf(z, x, y) !== zxyToTileId(z, x, y)) t.fail(`${z}/${x}/${y}`)
        compared++
      }
  t.equal(compared, 5_461)
})

test('the shipped map is what another reader of the format reads from it', async (t) => {
  const { PMTiles } = await import('pmtiles')
  const bytes = readFileSync(SHIPPED)
  const source = {
    getKey: () => SHIPPED,
    getBytes: async (offset: number, length: number) => ({
      data: new Uint8Array(bytes.subarray(offset, offset + length)).buffer as ArrayBuffer,
    }),
  }
  const theirs = new PMTiles(source)
  const ours = openBaseMap()
  t.equal((await theirs.getHeader()).maxZoom, ours.zoomMax)
  let [some, none] = [0, 0]
  for (let z = 0; z <= 6; z++)
    for (let x = 0; x < 2 ** z; x += z > 4 ? 3 : 1)
      for (let y = 0; y < 2 ** z; y += z > 4 ? 3 : 1) {
        const expected = await theirs.getZxy(z, x, y)
        const tile = ours.tile(z, x, y)
        if (expected === undefined) none++
        else some++
        if (expected === undefined ? tile !== undefined : !gunzipSync(tile!).equals(Buffer.from(expected.data)))
          t.fail(`${z}/${x}/${y}`)
      }
  t.ok(some > 400, `${some} tiles`)
  t.ok(none > 100, `${none} tiles of water`)
})

test('tiles are sent to anybody, with gzip to who takes it', async (t) => {
  const archive = `${folderOf(t)}/streets.pmtiles`
  writeFileSync(archive, 'PMTiles of streets')
  const door = await openDoor(t, { routes: tileRoutes(openBaseMap(), archive) })
  const get = async (path: string, headers: { [name: string]: string } = {}) => {
    const answer = await request(`${door.url}/api/v3/tiles${path}`, { headers })
    return { status: answer.statusCode, headers: answer.headers, body: Buffer.from(await answer.body.arrayBuffer()) }
  }
  const packed = await get('/base/6/35/21', { 'accept-encoding': 'br, gzip' })
  t.match(packed.headers, { 'content-encoding': 'gzip', 'content-type': 'application/vnd.mapbox-vector-tile' })
  const plain = await get('/base/6/35/21', { 'accept-encoding': 'gzip;q=0' })
  t.notOk(plain.headers['content-encoding'])
  t.same(gunzipSync(packed.body), plain.body)
  t.match(plain.body.toString('latin1'), /Warsaw/, 'it names a city')
  t.equal((await get('/base/6/0/38')).status, 204, 'the middle of the Pacific')
  for (const path of ['/base/7/0/0', '/base/1/2/0', '/base/0/0/1', '/base/x/0/0', '/base/-1/0/0', '/base/0/0/0.5'])
    t.equal((await get(path)).status, 404, path)

  const part = await get('/map.pmtiles', { range: 'bytes=0-6' })
  t.equal(part.status, 206)
  t.equal(part.body.toString(), 'PMTiles')
  const etag = String(part.headers.etag)
  t.equal((await get('/map.pmtiles', { 'if-none-match': etag })).status, 304)
  writeFileSync(archive, 'another archive')
  const changed = await get('/map.pmtiles', { range: 'bytes=0-6', 'if-range': etag })
  t.equal(changed.status, 200, 'a part of another archive is no part of this one')
  t.equal(changed.body.toString(), 'another archive')
  t.not(changed.headers.etag, etag)
  t.equal((await get('/map.pmtiles', { range: 'bytes=99-' })).status, 416)
})
