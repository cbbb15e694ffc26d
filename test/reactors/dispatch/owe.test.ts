import { test } from 'tap'
import type { TableStore } from '../../../src/engines/table-store.ts'
import { runIdOf, type RunTrigger } from '../../../src/features/automations/events.ts'
import type { AutomationRow } from '../../../src/features/automations/views.ts'
import { encodeJson } from '../../../src/kernel/event.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'
import { ActiveAutomations } from '../../../src/reactors/dispatch/active-automations.ts'
import { OwedRows } from '../../../src/reactors/dispatch/owed-rows.ts'
import { type OwedFact, RUNS_PER_EVENT_MAX } from '../../../src/reactors/dispatch/owed-facts.ts'
import { oweLogRuns } from '../../../src/reactors/dispatch/owe.ts'
import { PendingRuns } from '../../../src/reactors/dispatch/pending-runs.ts'
import { SteadyTime } from '../../../src/reactors/dispatch/retry-schedule.ts'
import type { HeardEvent } from '../../../src/reactors/dispatch/subject-event.ts'
import { SubjectRates } from '../../../src/reactors/dispatch/subject-rates.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { KnownThings, owner } from './world.ts'

const BUSY = '0190f3a2-0000-7000-8000-0000000000b1'
const QUIET = '0190f3a2-0000-7000-8000-0000000000b2'

/** Automations for new tasks: `automations` in one organization, none in the other. */
const openOwing = (automations: number, fields: JsonObject = {}) => {
  const clock = new FakeClock()
  const known = new KnownThings()
  const editor = { ...owner, permissions: new Set(['view/task', 'dispatch/task']) }
  known.editors.set(owner.userId, editor)
  const values = { hubId: 'h1', state: 'new', assigneeIds: [] }
  const data = (organizationId: string) => encodeJson({ organizationId, values, createdAt: 'c', at: 'a' })
  const rows = Array.from({ length: automations }, (_, i) => {
    const rules = { fields, schema: {} }
    return {
      row: { _id: `automation-${i}`, activatedPosition: -1, editorId: owner.userId, rules } as unknown as AutomationRow,
    }
  })
  const tables = {
    find: async (_: string, scope: string) => ({ rows: scope === BUSY ? rows : [], next: null }),
  } as unknown as TableStore
  const heard = (position: number, organizationId: string): HeardEvent => {
    const stream = `task-${position}`
    const common = { id: `e${position}`, type: 'taskCreated', isJson: true, metadata: {}, loggedAt: 0 }
    const event = { ...common, data: data(organizationId), stream, revision: 0, position }
    const subject = { type: 'task' as const, id: String(position) }
    const trigger: RunTrigger = {
      sourceId: event.id,
      event: 'onTaskCreated',
      organizationId,
      subject,
      at: 0,
      revision: 0,
    }
    return { event, triggers: [trigger], after: { _id: subject.id, ...values } }
  }
  const begin = () => new PendingRuns(0, new OwedRows(tables, 0), new SteadyTime(clock))
  const owe = (pending: PendingRuns, events: HeardEvent[]): Promise<OwedFact[]> => {
    const options = { tables, directory: known, now: () => 1, maxAgeMs: 1e12, waitingMax: 1e6, waiting: () => 0 }
    return oweLogRuns(options, pending, new SubjectRates(), events, new ActiveAutomations(tables))
  }
  return { heard, begin, owe }
}

const idsOf = (facts: readonly OwedFact[]): string[] =>
  facts.flatMap(({ fact }) =>
    fact.data.owed.flatMap(({ trigger, runs }) => runs.map(({ automationId }) => runIdOf(trigger, automationId))),
  )

test('what several events owe goes into one fact, by the last of them', async (t) => {
  const { heard, begin, owe } = openOwing(2)
  const pending = begin()
  const facts = await owe(pending, [heard(10, BUSY), heard(20, QUIET), heard(30, BUSY), heard(40, QUIET)])
  t.match(facts, [{ fact: { data: { sourceAt: 30, complete: true, firstSequence: 1 } } }])
  t.equal(new Set(idsOf(facts)).size, 4)
  for (const { fact, bytes } of facts)
    t.ok(bytes >= encodeJson(fact.data).length, 'its size is known without writing it')
  for (const [revision, { fact }] of facts.entries()) pending.apply(fact, revision)
  t.equal(pending.progress.log, 30)
  t.equal(pending.progress.sequence, 5)
  const many = await owe(
    pending,
    Array.from({ length: 400 }, (_, i) => heard(100 + i, BUSY)),
  )
  t.ok(many.length > 1)
  t.ok(
    many.every(({ fact }) => fact.data.complete),
    'none of them is cut',
  )
  t.equal(new Set(idsOf(many)).size, 800)
  t.strictSame(
    many.map(({ fact }) => fact.data.firstSequence),
    many.map((_, i) => 5 + idsOf(many.slice(0, i)).length),
  )
})

test('rules look at what the event left, whatever became of it since', async (t) => {
  const { heard, begin, owe } = openOwing(1, { 'task.state': 'new' })
  const event = heard(10, BUSY)
  t.equal(idsOf(await owe(begin(), [event])).length, 1, 'nothing is asked of the task as it is by now')
  t.strictSame(await owe(begin(), [{ ...event, after: { ...event.after, state: 'assigned' } }]), [])
})

test('an event that was cut short is finished after a crash, and nothing of it is owed twice', async (t) => {
  const { heard, begin, owe } = openOwing(RUNS_PER_EVENT_MAX + 100)
  const events = [heard(10, QUIET), heard(20, QUIET), heard(30, BUSY), heard(40, BUSY)]
  const facts = await owe(begin(), events)
  t.match(
    facts.map(({ fact }) => [fact.data.sourceAt, fact.data.complete]),
    [
      [30, false],
      [30, true],
      [40, false],
      [40, true],
    ],
  )
  const next = begin()
  next.apply(facts[0].fact, 0) // no more than this was durable
  next.heardLog(10) // what comes before the event owes nothing still
  t.equal(next.cutLogAt, 30)
  const rest: OwedFact[] = []
  for (const event of events.slice(1)) {
    const some = await owe(next, [event])
    for (const { fact } of some) next.apply(fact, 1 + rest.length)
    rest.push(...some)
    next.heardLog(event.event.position)
  }
  t.match(rest[0].fact.data, { sourceAt: 30, complete: true })
  const all = [...idsOf([facts[0]]), ...idsOf(rest)]
  t.equal(new Set(all).size, 2 * (RUNS_PER_EVENT_MAX + 100))
  t.equal(all.length, new Set(all).size)
  t.equal(next.cutLogAt, undefined)
})
