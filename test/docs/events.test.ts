import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { EVENTS } from '../../src/features/automations/event-table.ts'
import type { AutomationEvent } from '../../src/features/automations/events.ts'
import type { Decision } from '../../src/features/transitions/events.ts'
import { triggerOf } from '../../src/reactors/dispatch/owe.ts'
import { EVENTS_OF } from '../../src/reactors/dispatch/subject-event.ts'
import { resources } from '../../src/product-parts.ts'

const names = Object.keys(EVENTS) as AutomationEvent[]

/** What a decision about a tracker raises. */
const raisedBy = (decision: object): AutomationEvent => triggerOf({ point: {}, ...decision } as Decision).event
const raised = new Set([
  ...Object.values(EVENTS_OF).flatMap((events = []) => events),
  ...(['entry', 'leave'] as const).map((type) => raisedBy({ kind: 'transition', type })),
  ...(['tripStarted', 'tripFinished'] as const).map((kind) => raisedBy({ kind })),
])
const silent = names.filter((event) => !raised.has(event))

const webhooks = readFileSync('docs/webhooks.md', 'utf8')
const automations = readFileSync('docs/automations.md', 'utf8')

const spansIn = (text: string): string[] => [...text.matchAll(/`(\w+)`/g)].map(([, span]) => span)
const eventsIn = (text: string): string[] => spansIn(text).filter((span) => span in EVENTS)
const rowsOf = (text: string): string[] => text.split('\n').filter((line) => /^\| `on[A-Z]/.test(line))
/** The second level heading and what stands below it. */
const sectionOf = (page: string, heading: string): string =>
  page.split(/^## /m).find((section) => section.startsWith(heading)) ?? ''

test('the pages say of the same events that they do not fire yet as the code raises none of', async (t) => {
  t.ok(raised.size >= 8 && raised.size + silent.length === names.length, `${raised.size} events are raised`)
  t.same(eventsIn(sectionOf(webhooks, 'Events that do not fire yet')).sort(), [...silent].sort(), 'docs/webhooks.md')
  const unfired = rowsOf(automations).filter((row) => row.includes('does not fire yet'))
  t.same(unfired.flatMap(eventsIn).sort(), [...silent].sort(), 'docs/automations.md')
})

test('each page has each event once, with members that its data has', async (t) => {
  const headings = [...webhooks.matchAll(/^## `(on\w+)`$/gm)].map(([, event]) => event)
  const inWebhooks = [...headings, ...rowsOf(webhooks).flatMap(eventsIn)]
  t.same(inWebhooks.sort(), [...names].sort(), 'docs/webhooks.md')
  t.same(rowsOf(automations).flatMap(eventsIn).sort(), [...names].sort(), 'docs/automations.md')
  for (const row of [...rowsOf(webhooks), ...rowsOf(automations)]) {
    const [, which, ...rest] = row.split(' | ').flatMap((cell) => cell.split(/^\| /))
    const members = spansIn(rest.join(' ')).filter((span) => span !== 'geofenceGroupId')
    t.ok(members.length > 0, row)
    for (const event of eventsIn(which) as AutomationEvent[]) {
      const data = Object.keys(EVENTS[event].data(resources))
      t.same(
        members.filter((member) => !data.includes(member)),
        [],
        event,
      )
    }
  }
})
