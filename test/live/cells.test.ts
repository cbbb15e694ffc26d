import { test } from 'tap'
import { boxesOf, boxOfCell, cellAt, Cells, overlap } from '../../src/live/cells.ts'
import { freshlySeeded } from '../support/random.ts'

test('slots are found in the cells that they are in, those of one cell in the order of coming', (t) => {
  const random = freshlySeeded(t)
  const cells = new Cells()
  const where = new Map<number, number>()
  const size = 2_000
  for (let i = 0; i < 20_000; i++) {
    const slot = Math.floor(random() * size)
    const to = random() < 0.1 ? Number.NaN : cellAt((random() - 0.5) * 3e6, (random() - 0.5) * 3e6)
    cells.move(slot, to)
    if (where.get(slot) === to) continue
    where.delete(slot)
    if (!Number.isNaN(to)) where.set(slot, to)
  }
  for (let i = 0; i < 50; i++) {
    const [south, west] = [Math.round((random() - 0.5) * 3e6), Math.round((random() - 0.5) * 3e6)]
    const viewport = { south, west, north: south + Math.round(random() * 1e6), east: west + Math.round(random() * 1e6) }
    const found = cells.within(viewport) as number[]
    const boxes = boxesOf(viewport)
    const expected = [...where].filter(([, cell]) => boxes.some((box) => overlap(box, boxOfCell(cell))))
    const byCell = (slots: number[]): { [cell: string]: number[] } => {
      const lists: { [cell: string]: number[] } = {}
      for (const slot of slots) (lists[String(where.get(slot))] ??= []).push(slot)
      return lists
    }
    t.same(byCell(found), byCell(expected.map(([slot]) => slot)))
  }
  t.end()
})
