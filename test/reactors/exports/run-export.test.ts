import { test } from 'tap'
import type { FileStore } from '../../../src/engines/file-store.ts'
import type { TableStore } from '../../../src/engines/table-store.ts'
import type { ExportRequested } from '../../../src/features/exports/events.ts'
import type { ExportWalk, ListWalker } from '../../../src/features/exports/walk.ts'
import { ACCESS_ROLES, ACCESS_USERS } from '../../../src/features/identity/views.ts'
import { EXPORT } from '../../../src/features/exports/views.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import type { JobRun } from '../../../src/kit/jobs/attempt.ts'
import { type ExportRunServices, exportWork } from '../../../src/reactors/exports/run-export.ts'
import { FakeClock } from '../../support/fake-clock.ts'

const asked: ExportRequested = {
  ...{ organizationId: 'o', userId: 'u', kind: 'task', format: 'csv', fields: ['title'], mapping: {}, filter: {} },
  ...{ timeZone: 'UTC', total: 2, isDirect: false, at: 0 },
}

/** An export of which the second page is read after `between`. */
const openExport = (between: (role: { permissions: string[] }, user: { hubIds: string[] }) => void) => {
  const role = { permissions: ['export/task', 'view/task'], permissionDetails: [] }
  const user = { identityId: 'i', email: '', status: 'active', roleId: 'r', hubIds: ['h1', 'h2'], teamIds: [] }
  const rows = new Map<string, object>([
    [ACCESS_ROLES.name, role],
    [ACCESS_USERS.name, user],
  ])
  const written = new Map<string, string>()
  const walk = async ({ hubIds }: UserCaller): Promise<ExportWalk> => ({
    total: 2,
    pages: async function* () {
      yield [{ title: `of ${hubIds}` }]
      between(role, user)
      yield [{ title: 'last' }]
    },
  })
  const services = {
    tables: { get: async (table: string) => structuredClone(rows.get(table)) } as Partial<TableStore>,
    lists: { task: { walk } as Partial<ListWalker> },
    taskMembers: ['title'],
    clock: new FakeClock(),
    files: {
      put: async (key, pieces) => {
        let file = ''
        for await (const piece of pieces) file += Buffer.from(piece).toString()
        written.set(key, file)
        return file.length
      },
      list: async function* (prefix) {
        for (const key of written.keys()) if (key.startsWith(prefix)) yield { key, bytes: 0, putAt: 0 }
      },
      delete: async (key) => void written.delete(key),
    } as Partial<FileStore>,
    log: { read: async () => [{ type: EXPORT.types.requested, data: encodeJson(asked) }] },
  } as unknown as ExportRunServices
  const run: Partial<JobRun<ExportRequested>> = {
    asked,
    signal: new AbortController().signal,
    progress: async () => {},
  }
  const work = exportWork(services)
  const attempt = (number = 1) => work.run({ id: 'e', attempt: number, ...run } as JobRun<ExportRequested>)
  return { attempt, written, release: (upTo: number) => work.release?.('e', upTo) }
}

test('an export is of the rights that its requester has at its end', async (t) => {
  const undisturbed = openExport(() => {})
  t.match(await undisturbed.attempt(), { processed: 2, result: { rows: 2 } })

  const forbidden = openExport((role) => void role.permissions.splice(0, 1))
  await t.rejects(forbidden.attempt(), { code: 'forbidden', message: /export\/task/ }, 'a permission went')

  const fewer = openExport((_role, user) => void (user.hubIds = ['h1']))
  await t.rejects(fewer.attempt(), { code: 'overloaded' }, 'a hub went: it is written anew')
  t.match(await fewer.attempt(), { processed: 2 })
  t.equal(fewer.written.get('exports/o/e'), 'title\r\nof h1\r\nlast\r\n')
})

test('attempts write files of their own, and all of them go with the export', async (t) => {
  let page = 0
  const { attempt, written, release } = openExport((_role, user) => void (user.hubIds = [`h${page++}`]))
  for (const number of [1, 2]) await attempt(number).catch(() => undefined)
  t.same([...written.keys()], ['exports/o/e', 'exports/o/e.2'])
  t.not(written.get('exports/o/e'), written.get('exports/o/e.2'), 'one is not the other')
  await release(1)
  t.same([...written.keys()], ['exports/o/e.2'], 'the end of one that was overtaken takes nothing of the next')
  await release(2)
  t.equal(written.size, 0)
})
