import { test } from 'tap'
import { ENGINES, startEngines } from '../support/engine-servers.ts'
import { type Sender, sendThrough } from '../support/send-through.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { call, startService, until } from '../support/service.ts'
import { beginDay, checkDay, checkRevoked } from '../support/stream-checks.ts'
import { folderOf } from '../support/folder-of.ts'
import { seeded } from '../support/random.ts'

const FIXES = 800
const SEED = 20_261_122

test('engines and service killed at random moments under load: all comes back, nothing is lost, nothing is there twice', {
  skip: withoutRedis,
  timeout: 600_000,
}, async (t) => {
  const random = seeded(SEED)
  const folder = folderOf(t)
  const engines = await startEngines(t, `${folder}/engines`)
  const flags = [...engines.flags, '--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s']
  let service = await startService(`${folder}/data`, flags)
  let sender: Sender | undefined
  t.teardown(async () => {
    sender?.stop()
    await service.kill()
  })
  const begun = await beginDay(t, service, FIXES)
  const { token, day, setting, revoked: other } = begun

  sender = sendThrough(() => service, setting.ingestKey, day.fixes)
  const share = (part: number) => until('points', () => sender!.acknowledged >= FIXES * part || sender!.isOver)
  for (const [i, name] of ENGINES.entries()) {
    await share((i + random()) / 4)
    await engines.servers[name].killAndStart()
    t.comment(`${name} was killed at ${sender.acknowledged} of ${FIXES} points`)
  }
  await share((3 + random()) / 4)
  await service.kill()
  service = await startService(`${folder}/data`, flags)
  await sender.ended
  t.equal(sender.acknowledged, day.fixes.length, 'all is acknowledged in the end')

  await until('the token to be good still', async () => (await call(service, 'GET', '/user', { token })).status === 200)
  await checkRevoked(t, service, other)
  await checkDay(t, service, begun)
})
