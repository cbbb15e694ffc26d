import { test } from 'tap'
import { openLmdbEventLog } from '../../../src/engines/lmdb-log/lmdb-log.ts'
import { Failure } from '../../../src/kernel/errors.ts'
import { handleCommand } from '../../../src/kit/commands/handle-command.ts'
import { idSource } from '../../../src/kit/commands/ids.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { folderOf } from '../../support/folder-of.ts'

/** Can be opened once; a second opening is refused. */
const door = {
  initial: false,
  decide: (_command: object, isOpen: boolean) => {
    if (isOpen) throw new Failure('conflict', { message: 'It is open.' })
    return [{ type: 'opened', data: {} }]
  },
  evolve: () => true,
}

test('a request that is handled again after its process ended is not refused for what it did itself', async (t) => {
  const log = await openLmdbEventLog({ path: folderOf(t), clock: new FakeClock() })
  t.teardown(() => log.close())
  const request = (name: string) => ({ ids: idSource(1_000, Buffer.alloc(32, name)), metadata: {} })
  const open = (name: string) => handleCommand(log, 'door-1', door, {}, request(name))
  const first = await open('a')
  t.match(await open('a'), { state: true, version: 1, wrote: { position: first.wrote?.position, types: ['opened'] } })
  await t.rejects(open('b'), { code: 'conflict' }, "another's is")
  const stale = { ...request('a'), expectedVersion: 0 }
  t.match(await handleCommand(log, 'door-1', door, {}, stale), { version: 1 }, 'nor for the version that it made')
  t.equal((await log.read('door-1', 0, 10)).length, 1)
})
