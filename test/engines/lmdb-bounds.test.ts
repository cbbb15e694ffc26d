import { test, type Test } from 'tap'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import type { Find, Range, TableStore } from '../../src/engines/table-store.ts'
import type { Row, RowChange, TableDeclaration } from '../../src/kernel/table.ts'
import { realClock } from '../contracts/clocks.ts'
import { bruteForce } from '../contracts/table-store-rows.ts'
import { folderOf } from '../support/folder-of.ts'
import { seeded } from '../support/random.ts'

/* Bounds of rows that other conditions leave: by a walk, by what lies beyond them, or row by row, whichever is shortest. */

const PLACES: TableDeclaration = {
  name: 'places',
  version: 1,
  equality: ['kind', 'cell'],
  range: ['lat', 'lng', 'rank'],
  sparse: ['lat', 'lng'],
}
const ROWS = 24_000
const WIDTH = 100
const CELL = 10
/** Of rows that lie anywhere. */
const ANY_CELL = 'any'
const unless = { field: 'cell', value: ANY_CELL }

interface Places {
  store: TableStore
  rows: Map<string, Row>
}

const placesIn = async (t: Test): Promise<Places> => {
  const store = await openLmdbTableStore({ path: folderOf(t), clock: realClock })
  t.teardown(() => store.close())
  await store.declare(PLACES)
  const random = seeded(5)
  const rows = new Map<string, Row>()
  for (let i = 0; i < ROWS; i += 1) {
    const [lat, lng] = [random() * WIDTH, Math.floor(random() * WIDTH)]
    const cell = i % 50 === 25 ? ANY_CELL : `${Math.floor(lat / CELL)}/${Math.floor(lng / CELL)}`
    const place = i % 50 === 0 ? {} : { lat, lng, cell }
    rows.set(`p${String((i * 7919) % 100_000).padStart(6, '0')}`, {
      kind: i % 4 === 0 ? 'rare' : 'common',
      rank: Math.floor(random() * 500),
      ...place,
    })
  }
  await store.commit([...rows].map(([id, row]): RowChange => ({ table: 'places', scope: 's', id, row })))
  return { store, rows }
}

/** A box with sides of some lengths, and the cells that cover it: so few as can, or all. */
const boxOf = (random: () => number, [least, most]: readonly [number, number], isAll = false) => {
  const side = (): [from: number, to: number] => {
    const length = least + Math.floor(random() * (most - least) * 4) / 4
    const from = Math.floor(random() * (WIDTH - length) * 4) / 4
    return [from, from + length]
  }
  const sides = { lat: side(), lng: side() }
  const first = ([from]: [number, number]): number => (isAll ? 0 : Math.floor(from / CELL))
  const last = ([, to]: [number, number]): number => (isAll ? WIDTH / CELL - 1 : Math.floor(to / CELL))
  const cells: string[] = [ANY_CELL]
  for (let y = first(sides.lat); y <= last(sides.lat); y += 1)
    for (let x = first(sides.lng); x <= last(sides.lng); x += 1) cells.push(`${y}/${x}`)
  const ranges = Object.entries(sides).map(([field, side]): Range => {
    const keptWithin = { from: CELL * first(side), to: CELL * (last(side) + 1) }
    return { field, from: side[0], to: side[1], keptWithin, unless }
  })
  return { where: { cell: cells }, ranges }
}

/** All but such a box's columns, which goes on from the end of `lng` to its beginning. */
const roundBoxOf = (random: () => number, lengths: readonly [number, number]) => {
  const [lat, gap] = boxOf(random, lengths).ranges
  const [from, to] = [gap.to as number, gap.from as number]
  const [first, last] = [Math.floor(from / CELL), Math.floor(to / CELL)]
  const columns = Array.from({ length: WIDTH / CELL }, (_, x) => x).filter((x) => x >= first || x <= last)
  const { from: south, to: north } = lat.keptWithin as { from: number; to: number }
  const cells: string[] = [ANY_CELL]
  for (let y = south / CELL; y < north / CELL; y += 1) for (const x of columns) cells.push(`${y}/${x}`)
  const middle = (from + to) / 2
  const keptWithin = first <= last + 1 ? { from: middle, to: middle } : { from: CELL * first, to: CELL * (last + 1) }
  return {
    where: { cell: cells },
    ranges: [lat, { field: 'lng', from, to, goesRound: true as const, keptWithin, unless }],
  }
}

const LENGTHS = [
  [0, 8],
  [20, 60],
  [95, 98],
] as const

const SORTS: Find['sort'][] = [
  undefined,
  { field: 'rank', order: 'desc' },
  { field: 'lat', order: 'asc' },
  { field: 'lng', order: 'desc' },
]

const isSameAsAFilter = async (t: Test, { store, rows }: Places): Promise<void> => {
  const random = seeded(6)
  const sizes = new Set<string>()
  for (let round = 0; round < 36; round += 1) {
    const lengths = LENGTHS[round % 3]
    const box = round % 12 > 7 ? roundBoxOf(random, lengths) : boxOf(random, lengths, round % 6 === 0)
    const sort = SORTS[round % 4]
    const question: Find = { ...box, ...(sort !== undefined && { sort }), limit: 50, total: true, once: true }
    const wanted = bruteForce(rows, question)
    // Others are answered meanwhile, from the same memory.
    const answers = await Promise.all([
      store.find('places', 's', question),
      store.find('places', 's', { ...question, offset: 7 }),
      store.find('places', 's', { ...question, where: { ...box.where, kind: 'rare' } }),
    ])
    const idsOf = ({ rows: found }: (typeof answers)[number]): string[] => found.map(({ id }) => id)
    t.strictSame(idsOf(answers[0]), wanted.slice(0, 50), `${round}`)
    t.strictSame(idsOf(answers[1]), wanted.slice(7, 57))
    t.equal(answers[0].total, wanted.length)
    t.equal(answers[2].total, wanted.filter((id) => rows.get(id)?.kind === 'rare').length)
    sizes.add(wanted.length > 20_000 ? 'most' : wanted.length > 1_500 ? 'many' : 'few')
  }
  t.strictSame([...sizes].sort(), ['few', 'many', 'most'], 'sets of each size')
}

/** Turns of the event loop while a question is answered. */
const turnsOf = async (store: TableStore, questions: readonly Find[]): Promise<number> => {
  let [turns, isOver] = [0, false]
  const count = (): void => {
    turns += 1
    if (!isOver) setImmediate(count)
  }
  setImmediate(count)
  await Promise.all(questions.map((question) => store.find('places', 's', question)))
  isOver = true
  return turns
}

const givesTurns = async (t: Test, { store, rows }: Places): Promise<void> => {
  const question = (from: number): Find => ({
    where: { kind: 'rare' },
    range: { field: 'rank', from },
    sort: { field: 'rank', order: 'asc' },
    limit: 20,
    total: true,
    once: true,
  })
  const { total } = await store.find('places', 's', question(100))
  t.equal(total, bruteForce(rows, question(100)).length)
  const one = await turnsOf(store, [question(100)])
  t.ok(one >= 7, `6,000 rows are looked at in ${one} turns`)
  const three = await turnsOf(store, [question(101), question(102), question(103)])
  t.ok(three >= 20, `three times as many in ${three}`)
}

test('bounds', async (t) => {
  const places = await placesIn(t)
  await t.test('what lies in a box is the same by what lies beyond it, and as a plain filter says', (t) =>
    isSameAsAFilter(t, places),
  )
  await t.test('others have turns while rows are looked at, and each turn goes on with one of several questions', (t) =>
    givesTurns(t, places),
  )
})
