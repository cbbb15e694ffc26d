import { test } from 'tap'
import { Records } from '../../src/kernel/records.ts'
import { Slots } from '../../src/kernel/slots.ts'
import { idFrom } from '../../src/kit/commands/ids.ts'

test('each id has a slot of its own, which another one gets once it is released', (t) => {
  const slots = new Slots()
  const ids = ['', 'a', 'ä', ...Array.from({ length: 5_000 }, (_, i) => idFrom('tracker', i))]
  t.same(
    ids.map((id) => slots.of(id)),
    ids.map((_, i) => i),
  )
  t.same(
    ids.map((id) => slots.get(id)),
    ids.map((_, i) => i),
  )
  t.equal(slots.of(ids[7]), 7, 'the same again')
  t.equal(slots.idOf(7), ids[7])
  t.equal(slots.size, ids.length)

  slots.release(7)
  t.equal(slots.get(ids[7]), undefined)
  t.equal(slots.of('new'), 7)
  t.equal(slots.idOf(7), 'new')
  t.equal(slots.of(ids[7]), ids.length)
  t.equal(slots.size, ids.length + 1)
  t.end()
})

test('records begin with zeros and keep what was written while others come', (t) => {
  const records = new Records(4)
  const write = (slot: number): void => {
    const { ints, doubles } = records.piece(slot)
    const at = records.at(slot)
    t.same([...ints.subarray(at, at + 4)], [0, 0, 0, 0])
    doubles[at >> 1] = slot + 0.5
    ints[at + 2] = -slot
    ints[at + 3] = slot
  }
  const slots = [0, 1, 15, 16, 17, 700, 1_023, 1_024, 1_025, 5_000]
  for (const slot of slots) write(slot)
  const read = (slot: number): number[] => {
    const { ints, doubles } = records.piece(slot)
    const at = records.at(slot)
    return [doubles[at >> 1], ints[at + 2], ints[at + 3]]
  }
  t.same(
    slots.map(read),
    slots.map((slot) => [slot + 0.5, -slot, slot]),
  )
  records.clear(1_024)
  t.same(read(1_024), [0, 0, 0])
  t.same(read(1_025), [1_025.5, -1_025, 1_025], 'its neighbours stay')
  t.same(read(1_023), [1_023.5, -1_023, 1_023])
  t.end()
})
