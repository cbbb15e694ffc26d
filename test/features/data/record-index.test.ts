import { test } from 'tap'
import type { StoredField } from '../../../src/features/data/fields.ts'
import { indexOf, wordGroups } from '../../../src/features/data/record-index.ts'
import { wordsOf, wordsOfRow } from '../../../src/kernel/words.ts'

const TEXTS = [
  'Corner shop 12',
  'Żółć ǅ İstanbul GROẞ ﬁne ½ ٣ Σας Ǆ ÅNGSTRÖM',
  '日本語 ﾃｽﾄ １２３ 한국어 각 ᾳ ﷺ',
  `${'ż'.repeat(90)} ${'x'.repeat(99)}y`,
  'e\u0301 \u0345a 𝔘𝔫𝔦 Ⅻ ㎞',
]

test('the words of a field are found in it by themselves and by their beginnings, and in no other field', (t) => {
  const field = (no: number): StoredField => ({ _id: `f${no}`, no, name: `n${no}`, type: 'text' }) as StoredField
  const shape = { _id: '0190F3A2-7c1e-7d4b-9a55-1f2e3d4c5b6a', primaryKey: 'n1', fields: [field(1), field(11)] }
  const asked = (q: string, no: number) => wordGroups(q, [{ dataTypeId: shape._id, field: field(no) }])
  for (const text of TEXTS) {
    const words = wordsOfRow(indexOf(shape, { f1: text }), ['words'])
    const finds = (groups: ReturnType<typeof asked>): boolean =>
      groups.length > 0 && groups.every((group) => words.some((word) => group.some((start) => word.startsWith(start))))
    t.ok(finds(asked(text, 1)), text)
    t.notOk(finds(asked(text, 11)), `${text}, in another field`)
    for (const word of wordsOf(text)) t.ok(finds(asked(word.slice(0, 3), 1)), word)
  }
  t.end()
})
