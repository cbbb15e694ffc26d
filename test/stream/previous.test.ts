import { execFileSync } from 'node:child_process'
import { readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { atRest } from '../support/lived-in.ts'
import { PREVIOUS, PREVIOUS_FLAGS } from '../support/previous.ts'
import { type Service, startService } from '../support/service.ts'
import { differing, type Owner, type Shown, shownTo } from '../support/shown.ts'
import { checkRebuilt } from '../support/stream-checks.ts'

const REBUILT = [
  'directory',
  'access',
  'automations',
  'backtests',
  'notifications',
  'automation-runs',
  'audit-log',
  'location-history',
  'transitions',
  'latest-position',
  'matcher',
]

/** Settings of plugins are sealed by the first start: secrets in them are masked, and what the audit log knew of them is taken away. */
const sealed = (shown: Shown): Shown => ({
  ...shown,
  '/plugin-settings': shown['/plugin-settings'].map(({ _id, plugin, isActive }) => ({ _id, plugin, isActive })),
  '/audit-log': shown['/audit-log'].map(({ changes, address, ...entry }) =>
    entry.noun === 'pluginSetting' ? entry : { ...entry, changes, address },
  ),
})

/** Phones were all called "Phone"; now each is called as its user is. */
const named = (shown: Shown): Shown => {
  const users = new Map(shown['/users'].map(({ _id, name }) => [_id, name]))
  const isPhone = ({ kind, name }: Shown[string][number]): boolean => kind === 'phone' && name === 'Phone'
  const phones = new Map(shown['/trackers'].filter(isPhone).map(({ _id, userId }) => [_id, users.get(userId)]))
  const asUser = (row: Shown[string][number]) => {
    const name = phones.get(row._id ?? row.trackerId)
    return name === undefined ? row : { ...row, name }
  }
  return {
    ...shown,
    '/trackers': shown['/trackers'].map(asUser),
    '/live-positions': shown['/live-positions'].map(asUser),
  }
}

/** Everything that the owners saw in the previous version is shown to them. */
const checkShown = async (t: Test, service: Service, folder: string, when: string): Promise<void> => {
  await atRest(service)
  const owners = JSON.parse(readFileSync(join(folder, 'shown.json'), 'utf8')) as { owner: Owner; shown: Shown }[]
  t.equal(owners.length, 2)
  for (const { owner, shown } of owners) {
    t.ok(Object.values(shown).flat().length > 150, 'there is something to be shown')
    t.same(
      differing(named(sealed(shown)), await shownTo(service, owner, Object.keys(shown))),
      [],
      `${owner.email} ${when}`,
    )
  }
}

/** Starts the service at the time at which the installation was left: much of it ends by itself later. */
const startThen = (t: Test, folder: string, data: string): Promise<Service> => {
  const clock = new URL('../support/shifted-clock.js', import.meta.url).href
  const aheadMs = statSync(join(folder, 'shown.json')).mtimeMs - Date.now()
  const environment = { NODE_OPTIONS: `--import=${clock}`, CLOCK_AHEAD_MS: String(aheadMs) }
  const starting = startService(data, PREVIOUS_FLAGS, undefined, undefined, undefined, environment)
  t.teardown(async () => (await starting).kill())
  return starting
}

test('a data folder of the previous version opens, and all that it shows can be made of its log', {
  timeout: 300_000,
}, async (t) => {
  const folder = folderOf(t)
  execFileSync('tar', ['-xzf', PREVIOUS, '-C', folder])
  const service = await startThen(t, folder, join(folder, 'data'))
  await checkShown(t, service, folder, 'sees all')
  await checkRebuilt(t, service.data, REBUILT)
  await checkShown(t, service, folder, 'sees all of it built anew')
  t.equal(await service.stop(), 0)
})

test('a backup of the previous version is restored', { timeout: 300_000 }, async (t) => {
  const folder = folderOf(t)
  execFileSync('tar', ['-xzf', PREVIOUS, '-C', folder])
  const restored = join(folder, 'restored')
  execFileSync(process.execPath, ['dist/src/main.js', 'restore', join(folder, 'backup'), '--data', restored])
  const service = await startThen(t, folder, restored)
  await checkShown(t, service, folder, 'sees all of a backup')
  t.equal(await service.stop(), 0)
})
