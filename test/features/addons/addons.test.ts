import { createHash } from 'node:crypto'
import { test, type Test } from 'tap'
import { addonRoutes } from '../../../src/features/addons/api.ts'
import { harmlessSvg } from '../../../src/features/addons/svg.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import { sweepFiles } from '../../../src/reactors/sweep/sweep-files.ts'
import { fileOwners } from '../../../src/operations/file-owners.ts'
import { openIdentity, type Session } from '../../support/open-identity.ts'
import { formOf, png, textOf } from '../../support/pictures.ts'

type Parts = {
  _id?: string
  name?: string
  files?: { [name: string]: string | Buffer }
  icon?: Buffer | string
  extra?: string
}

const formWith = ({ _id, name, files = {}, icon, extra }: Parts) => {
  const form = new FormData()
  if (_id !== undefined) form.append('_id', _id)
  if (name !== undefined) form.append('name', name)
  for (const [file, text] of Object.entries(files)) form.append('files', new File([text], file))
  if (icon !== undefined) form.append('icon', new File([icon], 'icon'))
  if (extra !== undefined) form.append(extra, 'x')
  return formOf(form)
}

const send = async (session: Session, method: 'POST' | 'PUT' | 'PATCH', path: string, parts: Parts, more = {}) => {
  const { body, headers } = await formWith(parts)
  return session.call(method, path, body, { headers: { ...headers, ...more } })
}

const open = async (t: Test, origin?: string) => {
  const world = await openIdentity(t, {}, (services) => addonRoutes({ ...services, origin }))
  return { ...world, owner: await world.signup() }
}

const below = (path: string): string => path.slice('/api/v3'.length)

test('an add-on is uploaded, replaced and amended; each version of a file stays under its own path', async (t) => {
  const { owner, call, signup } = await open(t)
  const made = await send(owner, 'POST', '/addon', {
    name: 'Colors',
    files: { 'main.js': 'one()', 'lib.mjs': 'export {}' },
  })
  const { _id, files } = made.body.data
  t.match(made, {
    status: 201,
    body: { data: { name: 'Colors', version: 1, frameUrl: `/api/v3/addon/${_id}/files/index.html` } },
  })
  const integrity = `sha384-${createHash('sha384').update('one()').digest('base64')}`
  t.match(files[0], { name: 'main.js', size: 5, contentType: /^text\/javascript/, integrity })
  t.equal(files[0].url, files[0].path)
  const first = below(files[0].path)
  const read = await call('GET', first)
  t.match(read.headers, {
    'content-type': 'text/javascript; charset=utf-8',
    'cache-control': 'public, max-age=31536000, immutable',
    'content-security-policy': /^sandbox;/,
    'access-control-allow-origin': '*',
  })
  t.equal(await textOf(read.stream), 'one()')

  const put = await send(
    owner,
    'PUT',
    `/addon/${_id}`,
    { name: 'Paint', files: { 'main.js': 'two()' }, icon: png() },
    { 'if-match': '"1"' },
  )
  t.match(put, { status: 200, body: { data: { name: 'Paint', version: 2, icon: { contentType: 'image/png' } } } })
  t.equal(put.body.data.files.length, 1)
  t.equal(await textOf((await call('GET', first)).stream), 'one()', 'the version before stays')
  const now = await call('GET', `/addon/${_id}/files/main.js`)
  t.equal(now.headers['cache-control'], 'no-cache')
  t.equal(await textOf(now.stream), 'two()')
  t.equal((await call('GET', `/addon/${_id}/files/lib.mjs`)).status, 404, 'what it no longer has')
  t.match(await send(owner, 'PUT', `/addon/${_id}`, { name: 'X', files: { 'a.js': '' } }, { 'if-match': '"1"' }), {
    status: 409,
  })
  const patched = await send(owner, 'PATCH', `/addon/${_id}`, { name: 'Only the name' })
  t.match(patched.body.data, {
    name: 'Only the name',
    version: 3,
    icon: { name: 'icon.png' },
    files: [{ name: 'main.js' }],
  })
  t.match((await owner.call('GET', '/addons?q=only&sortBy=name')).body, {
    total: 1,
    data: [{ _id, files: [{ url: String }] }],
  })
  t.match((await owner.call('GET', `/addon/${_id}`)).body.data, patched.body.data)

  const stranger = await signup()
  for (const method of ['PUT', 'PATCH'] as const)
    t.equal((await send(stranger, method, `/addon/${_id}`, { name: 'Mine', files: { 'a.js': '' } })).status, 404)
  t.equal((await stranger.call('DELETE', `/addon/${_id}`)).status, 404)
  t.equal((await owner.call('DELETE', `/addon/${_id}`)).status, 200)
  t.equal((await call('GET', first)).status, 404, 'its files go with it')
})

test('what is no script, no picture, too much, or named as a path is refused', async (t) => {
  const { owner, call } = await open(t)
  const post = (parts: Parts) => send(owner, 'POST', '/addon', parts)
  const files = { 'main.js': 'one()' }
  for (const [parts, status, path] of [
    [{ files }, 400, '/name'],
    [{ name: '  ', files }, 400, '/name'],
    [{ name: 'x', files, extra: 'token' }, 400, '/token'],
    [{ name: 'x', files: { 'page.html': '<script>' } }, 400, '/files/0'],
    [{ name: 'x', files: { '.js': '' } }, 400, '/files/0'],
    [{ name: 'x', files: { 'a\u202e.js': '' } }, 400, '/files/0'],
    [{ name: 'x', files: Object.fromEntries(Array.from({ length: 21 }, (_, i) => [`${i}.js`, ''])) }, 400, '/files'],
    [{ name: 'x', files: { 'a.js': Buffer.from([0xff, 0xfe, 0]) } }, 415],
    [{ name: 'x', files: { 'a.js': 'x'.repeat(2 * 1024 * 1024 + 1) } }, 413],
    [{ name: 'x', files, icon: 'text' }, 415],
    [{ name: 'x', files, icon: '<html><svg/></html>' }, 415],
    [{ name: 'x', files, icon: Buffer.concat([png(), Buffer.alloc(256 * 1024)]) }, 413],
  ] as const) {
    const answer = await post(parts as Parts)
    t.equal(answer.status, status, JSON.stringify(answer.body))
    if (path !== undefined) t.match(answer.body.errors, [{ path }])
  }
  t.equal((await owner.call('GET', '/addons')).body.total, 0)
  const { _id } = (await post({ name: 'x', files })).body.data
  for (const name of ['..%2f..%2fkeys.json', '%2e%2e', 'main.js%00', `${'0'.repeat(32)}.main.js`, 'nothing.js'])
    t.not((await call('GET', `/addon/${_id}/files/${name}`)).status, 200, name)
})

test("a page of the service gets no script of an add-on; the document that runs them has nobody's origin", async (t) => {
  const { owner, call } = await open(t)
  const made = await send(owner, 'POST', '/addon', { name: 'x', files: { 'a.js': '1', 'b.mjs': '2' } })
  const { files, frameUrl } = made.body.data
  const ask = (site: string, dest: string) =>
    call('GET', below(files[0].path), { headers: { 'sec-fetch-site': site, 'sec-fetch-dest': dest } })
  for (const dest of ['script', 'worker', 'serviceworker']) t.equal((await ask('same-origin', dest)).status, 403, dest)
  t.equal((await ask('cross-site', 'script')).status, 200)
  const { _id } = made.body.data
  const frame = await call('GET', below(frameUrl))
  t.match(frame.headers['content-security-policy'], /^sandbox allow-scripts allow-forms;/)
  t.notMatch(frame.headers['content-security-policy'], /allow-same-origin|script-src[^;]*unsafe/)
  t.equal((await owner.call('GET', `/addon/${_id}`)).status, 200)
})

test('with an origin of their own, files are at that origin', async (t) => {
  const { owner, call } = await open(t, 'https://addons.example.com')
  const made = await send(owner, 'POST', '/addon', { name: 'x', files: { 'a.js': '1' } })
  const [{ path, url }] = made.body.data.files
  t.equal(url, `https://addons.example.com${path}`)
  t.match(await call('GET', below(path), { headers: { host: 'waymark.example.com' } }), {
    status: 308,
    headers: { location: url },
  })
  t.match(await call('GET', below(path), { headers: { host: 'addons.example.com' } }), { status: 200 })
})

test('an SVG icon keeps what draws, and nothing that runs, loads or leads elsewhere', async (t) => {
  const { owner, call } = await open(t)
  const icon = `<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x SYSTEM "file:///etc/passwd">]>
    <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 8 8" onload="alert(1)"><script>alert(2)</script>
    <defs><linearGradient id="g"><stop offset="0" stop-color="red"/></linearGradient></defs>
    <path d="M0 0h8" fill="url(#g)" onclick="alert(3)"/><path fill="url(https://evil.example/x)" d="M1 1"/>
    <foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="alert(4)"/></body></foreignObject>
    <a href="javascript:alert(5)"><circle r="1"/></a><use href="https://evil.example/#x"/><style>@import "//evil.example"</style>
    <image href="https://evil.example/i.png"/><animate attributeName="href" values="javascript:alert(6)"/><text>&x;Hi</text></svg>`
  const made = await send(owner, 'POST', '/addon', { name: 'x', files: { 'a.js': '' }, icon })
  t.equal(made.body.data.icon.contentType, 'image/svg+xml')
  const read = await call('GET', below(made.body.data.icon.path))
  t.match(read.headers, { 'content-type': 'image/svg+xml', 'content-security-policy': /^sandbox; default-src 'none'/ })
  const text = await textOf(read.stream)
  t.notMatch(text, /alert|script|evil|onload|onclick|href|ENTITY|passwd|foreign|style|image|animate/i)
  t.match(text, /^<svg xmlns="http:\/\/www.w3.org\/2000\/svg" viewBox="0 0 8 8">/)
  t.match(text, /fill="url\(#g\)"/)
  t.match(text, /linearGradient/)
  for (const hostile of [
    '<svg><svg><script xlink:href="data:,x"/></svg></svg>',
    '<SVG onload=alert(1)>',
    '<svg/onload=alert(1)>',
  ])
    try {
      t.notMatch((await harmlessSvg(Buffer.from(hostile))).toString(), /script|onload|alert/i, hostile)
    } catch (error) {
      t.match(error, { code: 'unsupported_type' }, hostile)
    }
})

test('files of an add-on are swept when it is deleted, and not before', async (t) => {
  const world = await open(t)
  const { owner, files } = world
  const made = await send(owner, 'POST', '/addon', { name: 'x', files: { 'a.js': '1' } })
  const { _id } = made.body.data
  await send(owner, 'PUT', `/addon/${_id}`, { name: 'x', files: { 'a.js': '2' } })
  const late = { files, tables: world.tables, clock: { now: () => Date.now() + 25 * 3_600_000 } }
  const sweep = () => sweepFiles(late, fileOwners(world), new AbortController().signal)
  t.equal(await sweep(), 0)
  await owner.call('DELETE', `/addon/${_id}`)
  t.equal(await sweep(), 2)
})

test('an add-on may bring its id: sent again it is the same, and nobody stores files below that of others', async (t) => {
  const { owner, signup, call } = await open(t)
  const _id = idFrom('addon')
  const parts = { _id: _id.toUpperCase(), name: 'Colors', files: { 'main.js': 'one()' } }
  const made = await send(owner, 'POST', '/addon', parts)
  t.match(made, { status: 201, body: { data: { _id, version: 1 } } })
  t.match((await send(owner, 'POST', '/addon', parts)).body.data, { _id, version: 1 })
  t.match(await send(owner, 'POST', '/addon', { ...parts, name: 'Other' }), { status: 409 })
  t.match(await send(owner, 'POST', '/addon', { ...parts, _id: 'x' }), {
    status: 400,
    body: { errors: [{ path: '/_id' }] },
  })
  t.match(await send(owner, 'PATCH', `/addon/${_id}`, { _id, name: 'Amended' }), { status: 200 })
  const foreign = { ...parts, name: 'Theirs', files: { 'main.js': 'stolen()' } }
  t.match(await send(await signup(), 'POST', '/addon', foreign), { status: 409 })
  const hash = createHash('sha256').update('stolen()').digest('hex').slice(0, 32)
  t.equal((await call('GET', `/addon/${_id}/files/${hash}.main.js`)).status, 404)
})
