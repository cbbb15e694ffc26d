import { test } from 'tap'
import { plainText as plainInConsole } from '../../src/console/parts/plain-text.ts'
import { plainText, WORDS_VERSION, wordsOf } from '../../src/kernel/words.ts'

/** How people type names whose letters they do not have. */
const TYPED: { [name: string]: string } = {
  'Łódź, ŻÓŁĆ': 'lodz zolc',
  'Tromsø Ǿ': 'tromso o',
  'Đà Nẵng, Đakovo': 'da nang dakovo',
  'Große Straße GROẞ': 'grosse strasse gross',
  'Ærøskøbing Œuvre': 'aeroskobing oeuvre',
  'Þingvellir Borgarfjörður': 'thingvellir borgarfjordur',
  'Iğdır İstanbul': 'igdir istanbul',
  'Ħamrun Ŧ Ŋ': 'hamrun t n',
  Gəncə: 'gence',
  'ΟΔΟΣ Οδός': 'οδοσ',
  'Zürich ﬁne ½': 'zurich fine 1 2',
  'مستودع القاهرة': 'مستودع القاهره',
  'مســـتودع على ٤٢': 'مستودع علي 42',
  'کرمان شرقی ۷': 'كرمان شرقي 7',
  'أحمد إبراهيم آل': 'احمد ابراهيم ال',
}

test('names are found as people type them without the letters, and with them', (t) => {
  for (const [name, typed] of Object.entries(TYPED)) {
    t.same(wordsOf(name), typed.split(' '), name)
    for (const text of [typed, typed.toUpperCase(), name.toLowerCase(), name.toUpperCase(), name.normalize('NFD')])
      t.same(new Set(wordsOf(text)), new Set(typed.split(' ')), text)
  }
  t.end()
})

test('whoever changes what words are made raises their version, so that what is stored is built anew', (t) => {
  const words = Object.keys(TYPED).flatMap(wordsOf).join(' ')
  t.equal(
    `${WORDS_VERSION} ${words}`,
    `2 ${Object.values(TYPED).join(' ')}`,
    'where other words are expected here, another version is, too',
  )
  t.end()
})

test('the console filters names as the service searches them', (t) => {
  const letters = Array.from({ length: 0x10000 }, (_, code) => String.fromCharCode(code))
  const others = letters.filter((letter) => plainText(letter) !== plainInConsole(letter))
  t.same(others, [])
  t.equal(plainInConsole('\u0665'), '5')
  t.end()
})
