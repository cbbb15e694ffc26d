import { test } from 'tap'
import { LOGOS } from '../../../src/features/identity/organizations/logo-path.ts'
import { sweepFiles } from '../../../src/reactors/sweep/sweep-files.ts'
import { fileOwners } from '../../../src/operations/file-owners.ts'
import { openIdentity, PASSWORD } from '../../support/open-identity.ts'
import { formOf, png } from '../../support/pictures.ts'

const PNG = { headers: { 'content-type': 'image/png' } }

const textOf = async (stream: AsyncIterable<Uint8Array | string> | undefined): Promise<Buffer> => {
  const pieces: Buffer[] = []
  for await (const piece of stream ?? []) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces)
}

test('a logo is uploaded as it is or in a form, and everyone may read it by a path that says what it is', async (t) => {
  const { signup, call, files, log } = await openIdentity(t)
  const owner = await signup()
  t.equal((await owner.call('GET', '/organization')).body.data.logo, null)
  const put = await owner.call('PUT', '/organization/logo', png(), PNG)
  t.match(put, { status: 200, body: { data: { version: 2 } } })
  const { logo, _id } = put.body.data
  t.match(logo, /^\/api\/v3\/organization\/[0-9a-f-]{36}\/logo\/[0-9a-f]{64}\.png$/)
  const path = logo.slice('/api/v3'.length)
  const read = await call('GET', path)
  t.match(read, {
    status: 200,
    headers: {
      'content-type': 'image/png',
      'cache-control': 'public, max-age=31536000, immutable',
      'content-security-policy': /sandbox/,
    },
  })
  t.ok((await textOf(read.stream)).equals(png()))
  const [item] = (await owner.call('GET', '/auth/my-organizations')).body.data
  t.equal(item.organizationLogo, logo)
  t.match((await owner.call('PATCH', '/organization', { name: 'Renamed' })).body.data, { logo })

  const form = new FormData()
  form.append('file', new File([png(8, 8)], 'evil.html', { type: 'text/html' }))
  const { body, headers } = await formOf(form)
  const second = (await owner.call('PUT', '/organization/logo', body, { headers })).body.data.logo
  t.match(second, /\.png$/, 'the bytes say what it is')
  t.not(second, logo)
  t.match((await owner.call('DELETE', '/organization/logo')).body.data, { logo: null, version: 5 })
  t.equal((await call('GET', path)).status, 200, 'who has the path still reads it for a while')
  for (const wrong of [
    `/organization/${_id}/logo/${'0'.repeat(64)}.png`,
    `/organization/${_id}/logo/..%2f..%2fkeys.json`,
  ])
    t.not((await call('GET', wrong)).status, 200, wrong)
  const kept = []
  for await (const { key } of files.list(LOGOS)) kept.push(key)
  t.equal(kept.length, 2)
  t.notMatch(Buffer.concat((await log.read(`organization-${_id}`, 0, 9)).map(({ data }) => data)), /IHDR/)
})

test('what is no picture, too large, or not allowed is refused', async (t) => {
  const { signup, login, roleId, call } = await openIdentity(t)
  const owner = await signup()
  const put = (bytes: Buffer, headers: { [name: string]: string } = PNG.headers) =>
    owner.call('PUT', '/organization/logo', bytes, { headers })
  for (const text of ['<svg xmlns="http://www.w3.org/2000/svg"/>', '<html>', 'GIF', ''])
    t.match(await put(Buffer.from(text)), { status: 415, body: { code: 'unsupported_type' } }, text)
  t.equal((await put(png(9_000, 1))).status, 413)
  t.equal((await put(Buffer.concat([png(), Buffer.alloc(2 * 1024 * 1024)]))).status, 413)
  const headers = { 'content-type': 'multipart/form-data; boundary=x' }
  t.equal((await put(Buffer.from('--x\r\n'), headers)).status, 400, 'a form that breaks off')
  t.equal((await put(Buffer.from(''), { 'content-type': 'multipart/form-data' })).status, 400, 'without boundary')
  const other = new FormData()
  other.append('picture', new File([png()], 'a.png'))
  const form = await formOf(other)
  t.match(await put(form.body, form.headers), { status: 400, body: { errors: [{ path: '/picture' }] } })
  const stale = await owner.call('PUT', '/organization/logo', png(), { headers: { ...PNG.headers, 'if-match': '"7"' } })
  t.match(stale, { status: 409, body: { code: 'stale_version' } })
  const planner = { name: 'P', email: 'p@example.com', password: PASSWORD, roleId: await roleId(owner, 'planner') }
  await owner.call('POST', '/user', planner)
  t.equal((await (await login(planner.email)).call('PUT', '/organization/logo', png(), PNG)).status, 403)
  t.equal((await call('PUT', '/organization/logo', { body: png(), ...PNG })).status, 401)
  t.equal((await owner.call('GET', '/organization')).body.data.logo, null)
})

test('logos that nothing names are swept once they are a day old', async (t) => {
  const world = await openIdentity(t)
  const { signup, files } = world
  const owner = await signup()
  await owner.call('PUT', '/organization/logo', png(1, 1), PNG)
  const { logo } = (await owner.call('PUT', '/organization/logo', png(2, 2), PNG)).body.data
  const sweep = (now: number) =>
    sweepFiles(
      { files, tables: world.tables, clock: { now: () => now } },
      fileOwners(world),
      new AbortController().signal,
    )
  t.equal(await sweep(Date.now() + 3_600_000), 0, 'what is young may still be named')
  t.equal(await sweep(Date.now() + 25 * 3_600_000), 1)
  const left = []
  for await (const { key } of files.list('')) left.push(key)
  t.same(
    left.map((key) => key.split('/').at(-1)),
    [logo.split('/').at(-1)],
  )
})
