import { test } from 'tap'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import type { Fix } from '../../src/cli/trace-file.ts'
import { realDay } from '../support/real-day.ts'
import { call, signUp, startService, until, type Service } from '../support/service.ts'
import { checkDay, prepare } from '../support/stream-checks.ts'
import { openReceiver } from '../support/webhook-receiver.ts'
import { folderOf } from '../support/folder-of.ts'
import { freshlySeeded } from '../support/random.ts'

const FIXES = 4_000
const KILLS = 10
const FRAME = 40

/** Sends from `at` on until the service dies or all is sent; answers how far it is acknowledged. What was not is sent again by the next. */
const sendFrom = async (service: Service, key: string, fixes: Fix[], at: number): Promise<number> => {
  let acknowledged = at
  try {
    const gateway = await IngestClient.connect(service.url, key)
    for (; acknowledged < fixes.length; acknowledged += FRAME) {
      await gateway.send(fixes.slice(acknowledged, acknowledged + FRAME))
      await gateway.drained()
    }
    gateway.close()
  } catch (error) {
    if (!/closed the connection|cannot connect/.test(String(error))) throw error
  }
  return acknowledged
}

test('killed ten times at random moments: nothing acknowledged is lost, nothing is there twice', {
  timeout: 900_000,
}, async (t) => {
  const random = freshlySeeded(t)
  const data = folderOf(t)
  const flags = ['--webhook-schedule', '1s,1s,2s,2s,5s,5s,5s']
  let service = await startService(data, flags)
  t.teardown(() => service.kill())
  const day = await realDay(t, FIXES, Date.now())
  const receiver = await openReceiver(t)
  const { token } = await signUp(service)
  const setting = await prepare(service, token, day, receiver)

  let at = 0
  for (let kill = 0; kill < KILLS; kill++) {
    const sending = sendFrom(service, setting.ingestKey, day.fixes, at)
    await new Promise((resume) => setTimeout(resume, 100 + random() * 900)) // the moment itself is what is random here
    await service.kill()
    at = await sending
    service = await startService(data, flags)
  }
  at = await sendFrom(service, setting.ingestKey, day.fixes, at)
  t.equal(at, day.fixes.length, 'all is acknowledged in the end')

  await until('the token to be good still', async () => (await call(service, 'GET', '/user', { token })).status === 200)
  const repeats = await checkDay(t, service, { day, receiver, setting })
  t.comment(`${repeats} deliveries were repeated under their own id`)
})
