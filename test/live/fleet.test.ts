import { test } from 'tap'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { Fleet } from '../../src/live/fleet.ts'
import { batchOf } from '../support/batches.ts'
import { callerWith } from '../support/callers.ts'
import { freshlySeeded } from '../support/random.ts'

const AGES = { staleAfterMs: 300_000, offlineAfterMs: 3_600_000 }
const caller: UserCaller = callerWith(['view/location-history'], { organizationId: 'org' })

const take = (fleet: Fleet, trackerId: string, recordedAt: number): void =>
  fleet.take(batchOf([{ trackerId, recordedAt, lat: recordedAt / 1e3, lng: 1 }], recordedAt), 0, 1)

test('slots of trackers that were deleted long ago are given to others, unless somebody has yet to hear of it', (t) => {
  const shown = new Set<number>()
  const fleet = new Fleet(AGES, (slot) => shown.has(slot))
  for (const trackerId of ['shown', 'owed', 'back']) {
    take(fleet, trackerId, 1)
    fleet.remove(trackerId)
  }
  shown.add(fleet.slotOf('shown'))
  fleet.owe(fleet.slotOf('owed'))
  fleet.know('back', { name: 'Back', hubIds: ['hub'] })
  take(fleet, 'back', 2)
  for (let i = 0; i < 3_000; i++) {
    fleet.know(`t${i}`, { name: `T${i}`, hubIds: ['hub'] })
    take(fleet, `t${i}`, 5)
    fleet.tellChanged(() => undefined)
    t.match(JSON.parse(fleet.text(fleet.slotOf(`t${i}`), 5, caller)), { trackerId: `t${i}`, name: `T${i}`, lat: 0.005 })
    fleet.remove(`t${i}`)
    fleet.tellChanged((_slot, fromLat, _fromLng, toLat) => t.same([fromLat, toLat], [50_000, Number.NaN]))
  }
  t.ok(fleet.size < 1_100, `${fleet.size} slots`)
  t.equal(fleet.idOf(fleet.slotOf('shown')), 'shown')
  t.same([...shown], [fleet.slotOf('shown')], 'it has its slot still')
  t.equal(fleet.slotOf('owed'), 1)
  t.equal(fleet.pointAt(fleet.slotOf('back'))?.recordedAt, 2)
  t.same(fleet.sightOf('t2999')?.hubIds, ['hub'], 'facts of those that went lately stay')
  t.equal(fleet.sightOf('t0'), undefined)
  t.end()
})

test('a deleted tracker is nowhere, whatever comes of it, until it is known again', (t) => {
  const fleet = new Fleet(AGES, () => false)
  const facts = { name: 'Van', hubIds: ['hub'] }
  const isAnywhere = (): boolean => fleet.isWithin(fleet.slotOf('van'), undefined)
  const told = (): number[] => {
    const places: number[] = []
    fleet.tellChanged((_slot, fromLat, _fromLng, toLat) => places.push(fromLat, toLat))
    return places
  }
  fleet.know('van', facts)
  take(fleet, 'van', 1)
  t.ok(isAnywhere())
  t.same(told(), [Number.NaN, 10_000])
  fleet.remove('van')
  t.same(told(), [10_000, Number.NaN], 'those who saw it hear that it is gone')
  fleet.forget('van')
  take(fleet, 'van', 2)
  t.notOk(isAnywhere(), 'points that were on their way')
  t.same(told(), [Number.NaN, Number.NaN])
  fleet.knowUnlessKnown('van', facts)
  t.notOk(isAnywhere(), 'a row that was read before it was deleted')
  t.same(fleet.sightOf('van')?.hubIds, ['hub'], 'who may see events that are still to come')
  fleet.know('van', facts)
  t.ok(isAnywhere(), 'it was made again')
  t.same(told(), [Number.NaN, 20_000])
  fleet.remove('never seen')
  fleet.knowUnlessKnown('never seen', facts)
  take(fleet, 'never seen', 1)
  t.notOk(fleet.isWithin(fleet.slotOf('never seen'), undefined))
  t.end()
})

test('a text is always that of the present point, whoever asked before', (t) => {
  const random = freshlySeeded(t)
  const fleet = new Fleet(AGES, () => false)
  const slots = 20
  const newest = new Array<number>(slots).fill(0)
  const owed = new Array<number>(slots).fill(0)
  for (let i = 0; i < slots; i++) take(fleet, `t${i}`, 0)
  for (let n = 1; n < 20_000; n++) {
    const slot = Math.floor(random() * slots)
    const what = random()
    if (what < 0.3) take(fleet, `t${slot}`, (newest[slot] = n))
    else if (what < 0.5) {
      fleet.owe(slot)
      owed[slot]++
    } else {
      const isSame = fleet.text(slot, n, caller).includes(`"lat":${newest[slot] / 1e3},`)
      if (!isSame) return t.fail(`${fleet.text(slot, n, caller)} in place of ${newest[slot]}`)
      if (what < 0.8 && owed[slot] > 0) {
        fleet.pay(slot)
        owed[slot]--
      }
    }
  }
  t.end()
})
