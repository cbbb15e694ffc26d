import { test } from 'tap'
import type { EventLog } from '../../../src/engines/event-log.ts'
import type { Wrote } from '../../../src/kit/http/route.ts'
import type { NewEvent } from '../../../src/kernel/event.ts'
import { listedLog } from '../../../src/reactors/imports/listed-log.ts'

const event = (type: string): NewEvent => ({ type }) as NewEvent

const open = () => {
  const settled: { wrote: Wrote; timeoutMs: number }[] = []
  let position = 0
  const log = {
    append: async () => ({ revision: 0, position: (position += 10) }),
    read: async (stream: string) => [stream],
  } as unknown as EventLog
  const listed = listedLog(log, async (wrote, timeoutMs) => {
    settled.push({ wrote, timeoutMs })
    return true
  })
  return { settled, ...listed }
}

test('the end of a job waits for the last append of each type of its events', async (t) => {
  const { settled, log, listed } = open()
  t.match(await log.append('a', [event('made.v1')], 'none'), { position: 10 })
  await log.append('b', [event('claimed.v1'), event('made.v1')], 'none')
  await log.append('c', [event('deleted.v1')], 'none')
  t.same(await log.read('d', 0, 1), ['d'], 'all else is the log’s')
  await listed()
  const [{ wrote, timeoutMs }] = settled
  const last = Object.fromEntries(
    [wrote, ...(wrote.before ?? [])].flatMap(({ types, position }) => types.map((type) => [type, position])),
  )
  t.same(last, { 'made.v1': 20, 'claimed.v1': 20, 'deleted.v1': 30 })
  t.equal(timeoutMs, 2_000)
})

test('a job that has appended nothing waits for nothing', async (t) => {
  const { settled, listed } = open()
  await listed()
  t.same(settled, [])
})
