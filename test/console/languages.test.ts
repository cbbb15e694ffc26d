import { test } from 'tap'
import { ar } from '../../src/console/i18n/ar.ts'
import { de } from '../../src/console/i18n/de.ts'
import { en } from '../../src/console/i18n/en.ts'
import { pl } from '../../src/console/i18n/pl.ts'

const gaps = (text: string): string[] => [...text.matchAll(/\{\w+\}/g)].map(([gap]) => gap).sort()

test('every language has every text, with the same gaps', async (t) => {
  for (const [language, texts] of Object.entries({ pl, de, ar })) {
    t.same(Object.keys(texts).sort(), Object.keys(en).sort(), language)
    for (const [key, text] of Object.entries(texts)) {
      t.not(text.trim(), '', `${language}: ${key}`)
      t.same(gaps(text), gaps(en[key as keyof typeof en]), `${language}: ${key}`)
    }
  }
})
