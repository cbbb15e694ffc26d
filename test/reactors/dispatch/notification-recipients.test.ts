import { test } from 'tap'
import type { AutomationRow } from '../../../src/features/automations/views.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'
import type { Work } from '../../../src/reactors/dispatch/actions/action.ts'
import { resolveRecipients } from '../../../src/reactors/dispatch/actions/notification-recipients.ts'
import { callerWith } from '../../support/callers.ts'

const organizationId = idFrom('organization', 'one')
const assigneeIds = Array.from({ length: 100_000 }, (_, n) => idFrom('user', n))

/** Roles without an end, and users of whom nobody sees the subject but those of `seen`. */
const world = (seen: readonly string[] = [], channel = 'inApp') => {
  const counts = { asked: 0, mostAtOnce: 0 }
  const row = { status: 'active', roleId: 'r', hubIds: [], teamIds: [] }
  let place = 0
  const tables = {
    getMany: async (_table: string, _scope: string, ids: readonly string[]) => {
      counts.mostAtOnce = Math.max(counts.mostAtOnce, ids.length)
      return ids.map(() => row)
    },
    find: async (_table: string, _scope: string, { limit }: { limit: number }) => ({
      rows: Array.from({ length: limit }, () => ({ id: idFrom('user of a role', place++) })),
      next: String(place),
    }),
  }
  const work = (to: readonly (object | string)[]): Work => ({
    automation: { _id: idFrom('automation'), organizationId, name: 'Tell' } as AutomationRow,
    details: { channel, to: to as never, text: 'x' },
    run: {
      ...{ runId: idFrom('run'), sequence: 1, owedAt: 0 },
      trigger: {
        ...{ sourceId: 's', event: 'onTaskCreated', organizationId, at: 0 },
        subject: { type: 'task', id: idFrom('task') },
      },
    },
    isFirst: false,
    editor: callerWith(['view/user'], { organizationId }),
    data: { task: { assigneeIds } },
    isSeenBy: ({ userId }) => {
      counts.asked++
      return seen.includes(userId)
    },
  })
  return { counts, resolve: (to: readonly (object | string)[]) => resolveRecipients(tables as never, work(to)) }
}

test('very many users of roles and refs, none of whom may see it, are looked at in bounded numbers', async (t) => {
  const roles = world()
  t.match(await roles.resolve(Array.from({ length: 200 }, (_, n) => ({ roleId: idFrom('role', n) }))), {
    recipients: [],
    isCut: true,
  })
  t.equal(roles.counts.asked, 5_000)
  t.ok(roles.counts.mostAtOnce <= 100)

  const refs = world()
  t.match(await refs.resolve(Array.from({ length: 200 }, () => ({ ref: 'task.assigneeIds' }))), {
    recipients: [],
    isCut: true,
  })
  t.equal(refs.counts.asked, 1_000)
  t.ok(refs.counts.mostAtOnce <= 100)
})

test('a ref to very many leaves the users of a role to be told', async (t) => {
  const seen = idFrom('user of a role', 7)
  const { resolve } = world([seen])
  t.match(await resolve([{ roleId: idFrom('role') }, { ref: 'task.assigneeIds' }]), { recipients: [seen], isCut: true })
})

test('of those who see it, two hundred are told and no more are looked up', async (t) => {
  const { counts, resolve } = world(assigneeIds)
  t.match(await resolve([{ ref: 'task.assigneeIds' }]), { recipients: assigneeIds.slice(0, 200), isCut: true })
  t.equal(counts.asked, 300)
})

test('an address written in two ways gets one mail; paths of urls differ by case', async (t) => {
  const mails = await world([], 'email').resolve(['Ann@example.com', 'ann@EXAMPLE.com', 'bob@example.com'])
  t.same(mails.recipients, ['Ann@example.com', 'bob@example.com'])
  const urls = ['https://chat.example.com/a', 'https://chat.example.com/A']
  t.same((await world([], 'chat').resolve(urls)).recipients, urls)
})
