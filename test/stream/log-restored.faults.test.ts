import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { folderOf } from '../support/folder-of.ts'
import { allRows, ask, call, type Service, signUp, startService, until } from '../support/service.ts'

const AT = Date.now() - 3_600_000

/** In one batch, which is one event. */
const send = async (service: Service, key: string, from: number, count: number): Promise<void> => {
  const gateway = await IngestClient.connect(service.url, key)
  const point = (i: number) => ({ externalId: 'one', recordedAt: AT + i * 1_000, lat: 52 + i / 1_000, lng: 21 })
  await gateway.send(Array.from({ length: count }, (_, i) => point(from + i)))
  await gateway.drained()
  gateway.close()
}

const caughtUp = (service: Service): Promise<void> =>
  until('the history to have all that is in the log', async () => {
    const answer = await askControl(service.data, { command: 'status' })
    const { consumers = [] } = (answer?.report ?? {}) as { consumers?: { consumer: string; events: number }[] }
    return consumers.some(({ consumer, events }) => consumer === 'location-history' && events === 0)
  })

const stored = async (service: Service, token: string, count: number): Promise<void> =>
  until(
    `${count} points in the history`,
    async () => (await allRows(service, '/location-histories', token)).length === count,
  )

const refusal = async (data: string): Promise<string> =>
  startService(data).then(
    async (service) => {
      await service.kill()
      return 'it started'
    },
    (error: Error) => error.message,
  )

test('a log that was restored from an older copy, or begins anew, is noticed, and nothing that comes then is lost', {
  timeout: 900_000,
}, async (t) => {
  const folder = folderOf(t)
  const data = join(folder, 'data')
  let service = await startService(data)
  t.teardown(() => service.kill())
  const { token, email, password } = await signUp(service)
  const { key } = (await ask(service, 'POST', '/ingest-key', { token, body: { name: 'a', autoCreate: true } })).data
  await send(service, key, 0, 5)
  await stored(service, token, 5)
  t.equal(await service.stop(), 0)
  cpSync(join(data, 'log'), join(folder, 'older'), { recursive: true })
  service = await startService(data)
  await ask(service, 'POST', '/hub', { token, body: { name: 'Later', lat: 1, lng: 2 } })
  await send(service, key, 5, 5)
  await stored(service, token, 10)
  t.equal(await service.stop(), 0)

  rmSync(join(data, 'log'), { recursive: true })
  cpSync(join(folder, 'older'), join(data, 'log'), { recursive: true })
  for (const _time of [1, 2])
    t.match(
      await refusal(data),
      /ended with 2: The log ends before what the tables were made of: .* empty the tables/,
      'older',
    )
  rmSync(join(data, 'tables'), { recursive: true })
  service = await startService(data)
  const hubs = (await ask(service, 'GET', '/hubs', { token })).data as { name: string }[]
  t.notOk(
    hubs.some(({ name }) => name === 'Later'),
    'what the log does not have is not there',
  )
  await stored(service, token, 10)
  await caughtUp(service)
  // Under revisions of the log that the history has seen with other points.
  await send(service, key, 20, 5)
  await stored(service, token, 15)
  t.equal(await service.stop(), 0)

  rmSync(join(data, 'log'), { recursive: true })
  for (const _time of [1, 2]) t.match(await refusal(data), /ended with 2: The log ends before/, 'one that begins anew')
  rmSync(join(data, 'tables'), { recursive: true })
  service = await startService(data)
  t.equal((await call(service, 'POST', '/auth/login', { body: { email, password } })).status, 401)
  const anew = await signUp(service)
  const made = await ask(service, 'POST', '/ingest-key', { token: anew.token, body: { name: 'a', autoCreate: true } })
  await send(service, made.data.key, 0, 3)
  await stored(service, anew.token, 3)
  t.equal(await service.stop(), 0)
})
