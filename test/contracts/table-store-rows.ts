import type { Find } from '../../src/engines/table-store.ts'
import type { Row, RowChange, TableDeclaration } from '../../src/kernel/table.ts'

/** A table with every kind of index. */
export const THINGS: TableDeclaration = {
  name: 'things',
  version: 1,
  equality: ['status', 'hubId', 'teamIds', 'isDone', 'size'],
  range: ['name', 'createdAt', 'size', 'rank'],
  sparse: ['rank'],
  text: ['name', 'notes'],
}

export interface ThingRow extends Row {
  name?: string
  status: string
}

const WORDS = [
  'Zürich',
  'Depot',
  'nord',
  'North',
  'Ölwechsel',
  'oil',
  'Café',
  'cafeteria',
  'éclair',
  'van',
  'VAN',
  'Nordlicht',
]
const NAMES = [
  'north gate',
  'North',
  'Zürich Depot',
  'a',
  'A',
  'b',
  'café',
  'Café',
  '',
  'x'.repeat(60),
  'van 12',
  'van 9',
]

export const randomThing = (random: () => number): ThingRow => {
  const pick = <Value>(values: readonly Value[]): Value => values[Math.floor(random() * values.length)] as Value
  const row: ThingRow = {
    status: pick(['open', 'done', 'late']),
    isDone: random() < 0.3,
    extra: { deep: [1, null, 'x'] },
  }
  if (random() < 0.8) row.name = pick(NAMES)
  if (random() < 0.9) row.hubId = `hub-${Math.floor(random() * 5)}`
  if (random() < 0.7)
    row.teamIds = Array.from({ length: Math.floor(random() * 4) }, () => `team-${Math.floor(random() * 6)}`)
  if (random() < 0.9) row.createdAt = Math.floor(random() * 50) * 1000 - 20_000
  if (random() < 0.8) row.size = pick([0, -1.5, 3, 3.25, 1e12, -1e-3])
  if (random() < 0.4) row.rank = `${pick(['a', 'b'])}${pick(['', '1', '7'])}`
  row.notes = `${pick(WORDS)} ${pick(WORDS)}-${pick(WORDS)}`
  return row
}

export const thingId = (index: number): string => `thing-${String(index * 7919).padStart(8, '0')}`

export const put = (scope: string, id: string, row: Row, expiresAt?: number): RowChange => ({
  table: 'things',
  scope,
  id,
  row,
  ...(expiresAt !== undefined && { expiresAt }),
})

export const drop = (scope: string, id: string): RowChange => ({ table: 'things', scope, id, row: null })

const plainWords = (text: string): string[] =>
  text
    .normalize('NFKD')
    .replace(/[\u0300-\u036f]/g, '')
    .toLowerCase()
    .split(/[^a-z0-9]+/)
    .filter((word) => word !== '')

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

const compareValues = (a: unknown, b: unknown): number => {
  if (a === undefined || b === undefined) return Number(a !== undefined) - Number(b !== undefined)
  return typeof a === 'number' && typeof b === 'number' ? a - b : compareText(String(a), String(b))
}

/** What a question means, by looking at every row: the ids in order. */
export const bruteForce = (
  rows: ReadonlyMap<string, Row>,
  { where = {}, every = {}, range, ranges = [], text, words: groups = [], sort }: Omit<Find, 'limit'>,
): string[] => {
  const matches = (row: Row): boolean => {
    for (const [field, wanted] of Object.entries(where)) {
      const members = Array.isArray(row[field]) ? (row[field] as unknown[]) : [row[field]]
      const any: readonly unknown[] = Array.isArray(wanted) ? wanted : [wanted]
      if (!members.some((member) => any.includes(member))) return false
    }
    for (const [field, wanted] of Object.entries(every)) {
      const members = Array.isArray(row[field]) ? (row[field] as unknown[]) : [row[field]]
      if (!wanted.every((values) => [values].flat().some((one) => members.includes(one)))) return false
    }
    for (const { field, from, to, goesRound } of [...(range === undefined ? [] : [range]), ...ranges]) {
      const value = row[field]
      if (value === undefined) return false
      const isFrom = from === undefined || compareValues(value, from) >= 0
      const isTo = to === undefined || compareValues(value, to) <= 0
      const isEitherEnough = goesRound === true && from !== undefined && to !== undefined && from > to
      if (isEitherEnough ? !isFrom && !isTo : !isFrom || !isTo) return false
    }
    const words = ['name', 'notes'].flatMap((field) => plainWords(String(row[field] ?? '')))
    const wanted = [...plainWords(text ?? '').map((word) => [word]), ...groups]
    return wanted.every((group) => words.some((word) => group.some((start) => word.startsWith(start))))
  }
  const found = [...rows].filter(([, row]) => matches(row))
  found.sort(
    ([idA, a], [idB, b]) =>
      (sort === undefined ? 0 : compareValues(a[sort.field], b[sort.field])) || compareText(idA, idB),
  )
  if (sort?.order === 'desc') found.reverse()
  return found.map(([id]) => id)
}

/** Every combination of conditions and orders, without limit. */
export const questions = (): Omit<Find, 'limit'>[] => {
  const wheres: Find['where'][] = [
    undefined,
    { status: 'open' },
    { status: ['open', 'late'], hubId: 'hub-1' },
    { teamIds: 'team-2' },
    { teamIds: ['team-1', 'team-4'], isDone: false },
    { size: [3, 1e12] },
    { status: 'unknown' },
    { isDone: true, status: 'done', hubId: ['hub-0', 'hub-3', 'hub-9'] },
  ]
  const ranges: Find['range'][] = [
    undefined,
    { field: 'createdAt', from: -5_000, to: 12_000 },
    { field: 'createdAt', from: 0 },
    { field: 'name', from: 'A', to: 'b' },
    { field: 'size', to: 3 },
    { field: 'name' },
  ]
  const texts = [undefined, 'nor', 'zurich DEP', 'cafe ol', 'éclair', 'nothinglikeit']
  const sorts: Find['sort'][] = [
    undefined,
    { field: 'name', order: 'asc' },
    { field: 'createdAt', order: 'desc' },
    { field: 'size', order: 'asc' },
    { field: 'name', order: 'desc' },
  ]
  const sparse: Omit<Find, 'limit'>[] = [
    { range: { field: 'rank', from: 'a', to: 'a9' }, sort: { field: 'rank', order: 'asc' } },
    { range: { field: 'rank' }, where: { status: 'open' }, sort: { field: 'rank', order: 'desc' } },
    { range: { field: 'rank', from: 'b' }, sort: { field: 'name', order: 'asc' } },
    { ranges: [{ field: 'rank', from: 'b' }, { field: 'createdAt', to: 9_000 }, { field: 'size' }] },
    { every: { teamIds: ['team-1', 'team-4'] }, sort: { field: 'createdAt', order: 'desc' } },
    {
      every: {
        teamIds: [
          ['team-1', 'team-2'],
          ['team-3', 'team-9'],
        ],
      },
      sort: { field: 'name', order: 'asc' },
    },
    { every: { teamIds: ['team-1'] }, where: { status: ['open', 'late'] } },
    {
      every: { teamIds: ['team-1', 'team-0'] },
      ranges: [
        { field: 'createdAt', from: 0 },
        { field: 'name', to: 'b' },
      ],
    },
  ]
  const round: Omit<Find, 'limit'>[] = [
    { range: { field: 'createdAt', from: 9_000, to: -5_000 } },
    ...[undefined, wheres[1], wheres[5]].flatMap((where) =>
      [
        { field: 'createdAt', from: 9_000, to: -5_000 },
        { field: 'createdAt', from: -5_000, to: 9_000 },
        { field: 'createdAt', from: 25_000, to: -15_000, keptWithin: { from: 2_500, to: 2_500 } },
        { field: 'size', from: 3.25, to: -1.5 },
        { field: 'rank', from: 'b', to: 'a1' },
      ].flatMap((range) =>
        sorts.map((sort) => ({
          ...(where && { where }),
          range: { ...range, goesRound: true as const },
          ...(sort && { sort }),
        })),
      ),
    ),
    {
      ranges: [
        { field: 'createdAt', from: 9_000, to: -5_000, goesRound: true },
        { field: 'createdAt', to: 20_000 },
      ],
      sort: { field: 'createdAt', order: 'asc' },
    },
  ]
  const inGroups: Omit<Find, 'limit'>[] = [
    { words: [['nor', 'zur']] },
    { words: [['nor', 'zur', 'nothinglikeit'], ['dep']], sort: { field: 'name', order: 'desc' } },
    { words: [['cafe', 'ol'], ['o']], where: { status: ['open', 'late'] } },
    { words: [['nor', 'dep']], text: 'zurich', range: { field: 'createdAt', from: 0 } },
    { words: [[]] },
    { words: [] },
  ]
  const plain = wheres.flatMap((where) =>
    ranges.flatMap((range) =>
      texts.flatMap((text) =>
        sorts.map((sort) => ({
          ...(where && { where }),
          ...(range && { range }),
          ...(text && { text }),
          ...(sort && { sort }),
        })),
      ),
    ),
  )
  return [...plain, ...sparse, ...round, ...inGroups]
}
