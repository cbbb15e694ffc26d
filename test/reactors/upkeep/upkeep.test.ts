import { test, type Test } from 'tap'
import { encodeJson } from '../../../src/kernel/event.ts'
import { JobRunner } from '../../../src/kit/jobs/runner.ts'
import { askUpkeep, UPKEEP, type UpkeepTasks, upkeepEnd, upkeepWork } from '../../../src/reactors/upkeep/upkeep.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices } from '../../support/open-services.ts'

const open = async (t: Test) => {
  const services = await openServices(folderOf(t))
  const done: string[] = []
  const tasks: UpkeepTasks = {
    rebuild: async (name) => {
      done.push(`rebuild ${name}`)
      return { rows: 3 }
    },
    sweep: async () => {
      throw new Error('the disk is full')
    },
    forget: async (name) => void done.push(`forget ${name}`),
  }
  const start = async (): Promise<void> => {
    const options = { name: UPKEEP, works: [upkeepWork(tasks)], atOnceMax: 1, keepMs: 86_400_000 }
    const runner = await new JobRunner(services, options).start()
    t.teardown(() => runner.close())
  }
  t.teardown(() => services.close())
  const { signal } = new AbortController()
  return { ...services, done, start, end: (stream: string) => upkeepEnd(services, stream, signal) }
}

test('tasks are done once, in order, wherever their asker waits; a failure is told and not tried again', async (t) => {
  const { start, end, done, log, ...services } = await open(t)
  const asked = [
    await askUpkeep({ ...services, log }, { task: 'rebuild', name: 'directory' }),
    await askUpkeep({ ...services, log }, { task: 'sweep', name: '' }),
    await askUpkeep({ ...services, log }, { task: 'forget', name: 'matcher' }),
  ]
  await start()
  t.same(await end(asked[0]), { rows: 3 })
  await t.rejects(end(asked[1]), { message: 'the disk is full' })
  t.equal(await end(asked[2]), null)
  t.same(done, ['rebuild directory', 'forget matcher'])
  t.same(
    (await log.read(asked[1], 0, 10)).map(({ type }) => type),
    ['upkeepAsked.v1', 'upkeepBegun.v1', 'upkeepFailed.v1'],
  )
})

test('what the version before asked for, began or did is read as it wrote it', async (t) => {
  const { start, end, done, log } = await open(t)
  const write = (stream: string, ...events: [string, object][]) =>
    log.append(
      stream,
      events.map(([type, data], i) => ({
        id: `018f0000-0000-7000-8000-0000000000${stream.at(-1)}${i}`,
        type,
        data: encodeJson(data),
        isJson: true,
        metadata: {},
      })),
      'none',
    )
  await write(
    'upkeep-1',
    ['upkeepAsked.v1', { task: 'rebuild', name: 'done' }],
    ['upkeepBegun.v1', { attempt: 1 }],
    ['upkeepDone.v1', { report: 1 }],
  )
  await write('upkeep-2', ['upkeepAsked.v1', { task: 'rebuild', name: 'begun' }], ['upkeepBegun.v1', { attempt: 1 }])
  await write('upkeep-3', ['upkeepAsked.v1', { task: 'rebuild', name: 'asked' }])
  await write(
    'upkeep-4',
    ['upkeepAsked.v1', { task: 'sweep', name: '' }],
    ...[1, 2, 3].map((attempt) => ['upkeepBegun.v1', { attempt }] as [string, object]),
  )
  await start()
  await t.rejects(end('upkeep-4'), { message: /begun 3 times/ })
  t.same([await end('upkeep-2'), await end('upkeep-3')], [{ rows: 3 }, { rows: 3 }])
  t.same(done, ['rebuild begun', 'rebuild asked'])
})
