import { test } from 'tap'
import { bothFilters } from '../../../src/features/exports/both-filters.ts'
import type { JsonObject } from '../../../src/kernel/json.ts'

const PARAMETERS = {
  state: { type: 'array', 'x-commas': true },
  hubId: { type: 'array', 'x-commas': true },
  tags: { type: 'array' },
  from: { type: 'string' },
  finishedTo: { type: 'string' },
}
const both = (kept: JsonObject, sent: JsonObject) => bothFilters(kept, sent, PARAMETERS)

test('of several values those are left that both filters allow, however they are written', async (t) => {
  t.same(both({ state: 'new,assigned' }, { state: 'new' }), { state: 'new' })
  t.same(both({ state: ['new', 'assigned'] }, { state: 'assigned,new' }), { state: ['assigned', 'new'] })
  t.same(both({ state: 'new,assigned' }, { state: ['assigned', 'finished'] }), { state: ['assigned'] })
  t.same(both({ hubId: '0190F3A2' }, { hubId: '0190f3a2' }), { hubId: '0190f3a2' })
  t.same(both({ state: 'new' }, { tags: 'a,b' }), { state: 'new', tags: 'a,b' })
  t.throws(() => both({ state: 'new,assigned' }, { state: 'finished' }), /\/filter\/state asks/)
})

test('a value that may contain a comma, or differ in case alone, is no other value', async (t) => {
  t.throws(() => both({ tags: 'a,b' }, { tags: 'a' }), /leaves out/)
  t.throws(() => both({ tags: 'A' }, { tags: 'a' }), /leaves out/)
  t.throws(() => both({ 'values.photo': 'a' }, { 'values.photo': 'b' }), /leaves out/)
  t.throws(() => both({ 'values.validTo': '2026' }, { 'values.validTo': '2027' }), /leaves out/)
})

test('of two bounds the narrower one holds', async (t) => {
  const [early, late] = ['2026-01-02T00:00:00Z', '2026-01-02T00:30:00+00:00']
  t.same(both({ from: early }, { from: late }), { from: late })
  t.same(both({ from: late }, { from: early }), { from: late })
  t.same(both({ finishedTo: late }, { finishedTo: early }), { finishedTo: early })
  t.same(both({ from: '2026-01-02T00:00:00+02:00' }, { from: '2026-01-01T23:00:00Z' }), {
    from: '2026-01-01T23:00:00Z',
  })
  t.same(both({ from: late }, { from: Date.parse(early) }), { from: late }, 'milliseconds since the epoch')
  t.same(both({ 'values.price.from': 9 }, { 'values.price.from': '10' }), { 'values.price.from': '10' })
  t.same(both({ 'values.day.to': '2026-03-01' }, { 'values.day.to': '2026-11-20' }), { 'values.day.to': '2026-03-01' })
  t.same(both({ from: late }, { from: 'soon' }), { from: 'soon' }, 'the list refuses it')
})
