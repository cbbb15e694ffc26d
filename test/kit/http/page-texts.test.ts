import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { test } from 'tap'
import type { Row } from '../../../src/kernel/table.ts'
import { PageTexts } from '../../../src/kit/http/page-texts.ts'

const page = (...rows: Row[]): { row: Row }[] => rows.map((row) => Object.freeze({ row: Object.freeze(row) }))
const show = ({ secret: _secret, ...row }: Row): Row => row
const parsed = (bytes: Uint8Array): unknown => JSON.parse(Buffer.from(bytes).toString())

test('each view of a page has a text of its own, made once', async (t) => {
  const texts = new PageTexts()
  const rows = Object.freeze(page({ a: 'ż', secret: 1 }, { a: 2 }))
  const whole = texts.ofPage(rows, 'owner', (row) => row)
  t.strictSame(parsed(whole), [{ a: 'ż', secret: 1 }, { a: 2 }])
  t.strictSame(parsed(texts.ofPage(rows, 'clerk', show)), [{ a: 'ż' }, { a: 2 }])
  const never = (): Row => t.fail('made again') as never
  t.equal(texts.ofPage(rows, 'owner', never), whole)
  const next = page({ a: 3 })
  t.strictSame(
    parsed(texts.ofPage([rows[1], ...next], 'clerk', (row) => (row === rows[1].row ? never() : row))),
    [{ a: 2 }, { a: 3 }],
    'a row that is on another page too',
  )
  for (let i = 0; i < 20; i += 1) t.strictSame(parsed(texts.ofPage(rows, `v${i}`, () => ({ i }))), [{ i }, { i }])
  t.strictSame(parsed(texts.ofPage(rows, 'clerk', show)), [{ a: 'ż' }, { a: 2 }])
})

test('what may still change is not kept', async (t) => {
  const texts = new PageTexts()
  const rows = [{ row: { a: 1 } as Row }]
  t.strictSame(parsed(texts.ofPage(rows, '', (row) => row)), [{ a: 1 }])
  rows[0].row.a = 2
  t.strictSame(parsed(texts.ofPage(rows, '', (row) => row)), [{ a: 2 }])
  t.strictSame(parsed(texts.ofPage([], '', (row) => row)), [])
})

test('texts take as much memory as they may, whatever their letters and however many see them', (t) => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  const used = (): number => {
    collect()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const most = 1024 * 1024
  for (const letter of ['a', 'ż']) {
    const texts = new PageTexts(most / 2)
    const row = JSON.stringify({ text: letter.repeat(200) })
    const pages = Array.from({ length: 400 }, () =>
      Object.freeze(page(...Array.from({ length: 20 }, () => JSON.parse(row) as Row))),
    )
    const before = used()
    let taken = 0
    for (const view of ['owner', 'planner', 'clerk'])
      for (const [i, rows] of pages.entries()) {
        texts.ofPage(rows, view, show)
        if (i % 20 === 0) taken = Math.max(taken, used() - before)
      }
    t.ok(taken > most / 2 && taken < 1.5 * most, `${taken} bytes of texts with ${letter}`)
    const [newest] = pages.slice(-1)
    t.equal(
      texts.ofPage(newest, 'clerk', () => t.fail('made again') as never),
      texts.ofPage(newest, 'clerk', show),
    )
  }
  t.end()
})
