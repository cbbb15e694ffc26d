import { execFileSync } from 'node:child_process'
import { copyFileSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { t } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { openApiWorld } from './api-world.ts'
import { CompanyDay, courierRound } from './company-day.ts'
import { PREVIOUS, PREVIOUS_FLAGS } from './previous.ts'
import { ask, call, startService } from './service.ts'
import { lastingLists, shownTo } from './shown.ts'
import { openReceiver } from './webhook-receiver.ts'

/**
 * Makes the installation of the previous version that the tests open: `node dist/test/support/make-previous.js <its folder>
 * <a new folder>`, where the first is a built checkout of that version. A back-test over a few points must be a job there.
 */
const [checkout, folder] = process.argv.slice(2).map((path) => resolve(path))
const paths = ['data', 'backup', 'shown.json'].map((name) => join(folder, name))
const [data, backup, shownPath] = paths
t.setTimeout(900_000)
mkdirSync(folder)
const flags = [...PREVIOUS_FLAGS, '--webhook-schedule', '20ms', '--location-log-days', '0']
const entry = join(checkout, 'dist/test/support/few-points-child.js')
const service = await startService(data, flags, 0, entry)
const world = await openApiWorld(service)
const { email, password, ids, token } = world
await ask(service, 'DELETE', `/task/schedule/${ids.scheduleId}`, { token })
await ask(service, 'PATCH', `/geofence/${ids.geofenceId}`, { token, body: { radius: 600 } })
await ask(service, 'POST', `/automation/${ids.automationId}/rotate-secret`, { token })
await ask(service, 'POST', `/automation-log/${ids.runId}/retry`, { token })
await askControl(data, { command: 'sweep' })
const round = await courierRound(t, Date.now())
const disturb = async (): Promise<void> => undefined
const day = new CompanyDay({ service: () => service, disturb }, await openReceiver(t), round)
await day.live()
const lists = await lastingLists(service, token)
const backtest = `/geofence/${ids.geofenceId}/backtest/${ids.backtestId}`
const worlds = [
  ...lists,
  `/task/${ids.taskId}/history`,
  `/geofence/${ids.geofenceId}/backtests`,
  `${backtest}/transitions`,
]
for (const path of worlds) if ((await call(service, 'GET', path, { token })).status !== 200) throw new Error(path)
const shown = [
  { owner: { email, password }, shown: await shownTo(service, { email, password }, worlds) },
  { owner: day.owner, shown: await shownTo(service, day.owner, lists) },
]
writeFileSync(shownPath, JSON.stringify(shown))
execFileSync(process.execPath, [join(checkout, 'dist/src/main.js'), 'backup', backup, '--data', data])
await service.stop()
for (const left of ['mail', 'history-scratch']) rmSync(join(data, left), { recursive: true, force: true })
mkdirSync(dirname(PREVIOUS), { recursive: true })
execFileSync('tar', ['-czf', join(folder, 'previous.tar.gz'), '-C', folder, 'data', 'backup', 'shown.json'])
copyFileSync(join(folder, 'previous.tar.gz'), PREVIOUS)
process.exit()
