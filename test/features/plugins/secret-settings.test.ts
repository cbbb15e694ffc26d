import { test } from 'tap'
import { masked, unmasked } from '../../../src/features/plugins/masked.ts'
import { pluginSetting, shownSettings } from '../../../src/features/plugins/plugin-setting.ts'
import { readLogged } from '../../../src/features/audit/changes.ts'
import type { AuditRow } from '../../../src/features/audit/views.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { openIdentity } from '../../support/open-identity.ts'

const SETTINGS = {
  palette: 'dark',
  apiKey: 'first-hidden-value',
  nested: {
    list: [
      { name: 'a', token: 'second-hidden-value' },
      { name: 'b', token: 'third-hidden-value' },
    ],
    port: 8080,
  },
  Passwords: ['fourth-hidden-value'],
  clientSecret: null,
}
const SHOWN = {
  palette: 'dark',
  apiKey: '***',
  nested: {
    list: [
      { name: 'a', token: '***' },
      { name: 'b', token: '***' },
    ],
    port: 8080,
  },
  Passwords: '***',
  clientSecret: null,
}

test('*** stands for the value that was there, also in lists that were put into another order', (t) => {
  t.same(masked(SETTINGS), SHOWN)
  t.same(unmasked(SHOWN, SETTINGS, ''), SETTINGS)
  const [a, b] = SETTINGS.nested.list
  const keeps = (sent: object[]) => unmasked({ list: sent as never }, { list: [a, b] }, '/settings')
  t.same(keeps([{ name: 'b', token: '***' }]), { list: [b] })
  t.same(
    keeps([
      { name: 'b', token: '***' },
      { name: 'a', token: '***' },
    ]),
    { list: [b, a] },
  )
  t.same(
    keeps([
      { name: 'c', token: '***' },
      { name: 'b', token: '***' },
    ]),
    { list: [{ ...a, name: 'c' }, b] },
  )
  t.throws(() => keeps([{ name: 'c', token: '***' }]), { message: /^\/settings\/list\/0\/token must be/ })
  t.throws(() => unmasked({ key: '***' }, undefined, '/settings'), { code: 'invalid' })
  t.same(unmasked({ palette: '***' }, undefined, ''), { palette: '***' }, 'another name says nothing')
  t.end()
})

test('settings of a plugin are encrypted in the log and in the table, and their secrets answered as ***', async (t) => {
  const world = await openIdentity(t)
  const { signup, log, tables } = world
  const owner = await signup()
  const made = await owner.call('POST', '/plugin-setting', { plugin: 'Colors', settings: SETTINGS })
  t.match(made, { status: 201, body: { data: { settings: SHOWN } } })
  t.notOk('sealed' in made.body.data)
  const { _id: id, organizationId } = made.body.data
  const path = `/plugin-setting/${id}`
  const valuesNow = async () => {
    const answer = await owner.call('GET', path)
    t.same((await owner.call('GET', '/plugin-settings')).body.data, [answer.body.data])
    return answer.body.data.settings
  }
  t.same(await valuesNow(), SHOWN)
  const whole = (await owner.call('GET', path)).body.data
  t.match(await owner.call('PUT', path, whole), { status: 200, body: { data: { settings: SHOWN, version: 1 } } })
  const patch = { settings: { palette: 'light', apiKey: '***', nested: null } }
  const left = { palette: 'light', apiKey: '***', Passwords: '***', clientSecret: null }
  t.same((await owner.call('PATCH', path, patch)).body.data.settings, left)
  t.match(await owner.call('PATCH', path, { settings: { newToken: '***' } }), {
    status: 400,
    body: { errors: [{ path: '/settings/newToken', message: 'must be a value: there is none that *** could keep' }] },
  })
  const events = await log.read(`pluginSetting-${id}`, 0, 10)
  const row = await tables.get('pluginSettings', organizationId, id)
  const kept = `${events.map(({ data }) => Buffer.from(data).toString()).join()} ${JSON.stringify(row)}`
  t.equal(events.length, 2)
  for (const word of ['hidden-value', 'dark', 'light']) t.notMatch(kept, new RegExp(word), word)
  t.match(kept, /Colors/)
  const opened = pluginSetting.writer(world)
  const { state } = await opened.load(id)
  t.match(opened.open(state, 'settings'), { apiKey: 'first-hidden-value', Passwords: ['fourth-hidden-value'] })
  const asShown = async (_caller: unknown, _declaration: unknown, values: JsonObject) =>
    shownSettings(world.keyring, values)
  const said = events[1]
  const entry = { stream: said.stream, revision: said.revision, _id: said.id } as AuditRow
  const logged = await readLogged({ log, asShown }, await world.callerOf(owner), pluginSetting.declaration, entry)
  t.same(logged.changes.settings, { from: SHOWN, to: left }, 'the audit log says what is answered')
})
