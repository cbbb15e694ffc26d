import type { Test } from 'tap'
import { automations } from '../../../projections/automations.ts'
import type { EventLog } from '../../../src/engines/event-log.ts'
import type { HttpCaller } from '../../../src/engines/http-caller.ts'
import type { Mailer } from '../../../src/engines/mailer.ts'
import { automationRoutes } from '../../../src/features/automations/api.ts'
import { automationResource } from '../../../src/features/automations/declaration.ts'
import {
  ATTEMPTS_MADE,
  type AttemptMade,
  type AttemptsMade,
  RUNS_OWED,
  RUNS_SKIPPED,
  runFactOf,
  runIdOf,
  type RunsOwed,
  type RunsSkipped,
  runsStream,
} from '../../../src/features/automations/events.ts'
import { geofence } from '../../../src/features/geofences/declaration.ts'
import { geofenceGroup } from '../../../src/features/geofences/group.ts'
import { AUTOMATIONS } from '../../../src/features/automations/views.ts'
import type { Fact } from '../../../src/kernel/event.ts'
import { actionsOf } from '../../../src/product-parts.ts'
import { TableDirectory } from '../../../src/reactors/dispatch/directory.ts'
import { Dispatcher, type DispatcherOptions } from '../../../src/reactors/dispatch/dispatcher.ts'
import { isFired } from '../../../src/reactors/dispatch/subject-event.ts'
import { dryRun } from '../../../src/reactors/dispatch/dry-run.ts'
import { openIdentity, type Session } from '../../support/open-identity.ts'
import { startProjections, type TestServices } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

// biome-ignore lint/suspicious/noExplicitAny: what any route answers
export type Json = any

/** Nothing goes out. */
const noMail: Mailer = {
  check: async () => undefined,
  send: async () => ({ kind: 'failed', error: 'nobody is there' }),
  close: async () => undefined,
}
const nobody: HttpCaller = {
  refusal: () => undefined,
  fetch: () => Promise.reject(new Error('nothing is fetched here')),
  post: async () => ({ kind: 'failed', error: 'nobody is there' }),
  close: async () => undefined,
}

const directoryOf = (services: TestServices): TableDirectory =>
  new TableDirectory({ ...services, ages: { staleAfterMs: 1, offlineAfterMs: 2 }, inRollout: () => true })

export const actionsFor = (services: TestServices) =>
  actionsOf({ ...services, caller: nobody, mailer: noMail, publicUrl: 'https://map.example' })

/** An organization with its routes, and a dispatcher that the test begins and ends; runs are read from the log. */
export const openOffice = async (t: Test, partitions = 1) => {
  const further = (services: TestServices) => {
    const directory = directoryOf(services)
    const actions = actionsFor(services)
    return automationRoutes({
      ...services,
      actions,
      inRollout: () => true,
      editor: (...asked) => directory.editor(...asked),
      isFired,
      dryRun: (row, asked) => dryRun({ ...services, directory, actions }, row, asked),
    })
  }
  const world = await openIdentity(t, {}, further, undefined, [automationResource, geofenceGroup, geofence])
  const automationsRun = await startProjections(world, [automations])
  t.teardown(() => automationsRun.runner.close())
  const owner = await world.signup()
  const send =
    (session: Session) =>
    async (method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body?: Json): Promise<Json> => {
      const answer = await session.call(method, path, body)
      if (answer.status >= 300) throw new Error(`${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`)
      return answer.body.data
    }
  const ask = send(owner)
  const [hubId] = owner.body.data.hubId
  const userId = owner.body.data.userId ?? owner.body.data._id
  const type = await ask('POST', '/data-type', {
    name: 'Customers',
    primaryKey: 'number',
    fields: [
      { name: 'number', type: 'text' },
      { name: 'phone', type: 'text' },
      { name: 'visits', type: 'number', max: 100 },
      { name: 'hidden', type: 'text' },
    ],
  })
  const flow = await ask('POST', '/flow', {
    name: 'Call',
    steps: [
      {
        id: 'one',
        name: 'One',
        components: [
          { id: 'phone', type: 'text', label: 'Phone' },
          { id: 'note', type: 'text', label: 'Note', readOnly: true },
          { id: 'count', type: 'number', label: 'Count', max: 100 },
          { id: 'customer', type: 'reference', dataTypeId: type._id, label: 'Customer' },
          { id: 'photos', type: 'photo', label: 'Photos' },
        ],
      },
    ],
    dataSource: { dataTypeId: type._id, mapping: { phone: 'phone', note: 'number' } },
  })
  /** Waits until the dispatcher knows of it. */
  const known = async (id: string, version: number): Promise<void> =>
    until('the automation to be listed', async () => {
      const row = await world.tables.get(AUTOMATIONS.name, owner.body.data.organizationId, id)
      return ((row?.version as number) ?? 0) >= version
    })
  const automate = async (body: Json, by = owner): Promise<Json> => {
    const made = await send(by)('POST', '/automation', { name: String(body.event), ...body })
    await known(made._id, 1)
    return made
  }
  const begin = async (
    log: EventLog = world.log,
    lists: Partial<Pick<typeof world, 'tables' | 'settle'>> = {},
    more: Partial<DispatcherOptions> = {},
  ) => {
    const services = { ...world, ...lists, log }
    const dispatcher = new Dispatcher({
      ...services,
      actions: actionsFor(services),
      directory: directoryOf(services),
      partitions,
      scheduleMs: [5_000],
      maxAgeMs: 86_400_000,
      ...more,
    })
    await dispatcher.declare()
    for (let partition = 0; partition < partitions; partition++) await dispatcher.load(partition)
    return dispatcher
  }
  /** What the log says of the runs of an automation, by id: how each ended, or that it waits. */
  const runsOf = async (
    automationId: string,
  ): Promise<{
    [runId: string]: { status: string; reason?: string; last?: AttemptMade; depth?: number; taskId: string }
  }> => {
    const runs: Awaited<ReturnType<typeof runsOf>> = {}
    for (let partition = 0; partition < partitions; partition++)
      for (let from = 0, isMore = true; isMore; ) {
        const events = await world.log.read(runsStream(partition), from, 500)
        for (const event of events) note(runs, automationId, runFactOf(event))
        isMore = events.length === 500
        from += events.length
      }
    return runs
  }
  const ended = async (automationId: string, count: number) => {
    await until(`${count} runs to end`, async () => {
      const runs = Object.values(await runsOf(automationId))
      return runs.length >= count && runs.every(({ status }) => status !== 'pending')
    })
    return Object.values(await runsOf(automationId))
  }
  return { ...world, owner, send, ask, hubId, userId, type, flow, automate, known, begin, runsOf, ended }
}

const note = (runs: Json, automationId: string, { type, data }: Fact): void => {
  if (type === RUNS_OWED)
    for (const { trigger, runs: owed } of (data as RunsOwed).owed)
      for (const one of owed)
        if (one.automationId === automationId)
          runs[runIdOf(trigger, automationId)] = {
            status: one.reason === undefined ? 'pending' : 'skipped',
            reason: one.reason,
            depth: trigger.chain?.depth,
            taskId: trigger.subject.id,
          }
  if (type === ATTEMPTS_MADE)
    for (const attempt of (data as AttemptsMade).attempts)
      if (attempt.automationId === automationId)
        Object.assign(runs[attempt.runId], { status: attempt.status, last: attempt })
  if (type === RUNS_SKIPPED && (data as RunsSkipped).automationId === automationId)
    for (const { runId } of (data as RunsSkipped).runs)
      Object.assign(runs[runId], { status: 'skipped', reason: (data as RunsSkipped).reason })
}
