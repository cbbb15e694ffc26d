import { RE2JS } from 're2js'
import { test } from 'tap'
import { linearPattern } from '../../../src/kit/values/pattern.ts'

test('a pattern that is too large is refused without being compiled', (t) => {
  const { compile } = RE2JS
  let compiled = 0
  RE2JS.compile = (...given) => {
    compiled++
    return compile.apply(RE2JS, given)
  }
  t.teardown(() => {
    RE2JS.compile = compile
  })
  const large = [
    'a{1000}'.repeat(70),
    '.{0,1000}'.repeat(55),
    '(a|b){500}'.repeat(50),
    '(?:ab?c*){330}'.repeat(35),
    '(?:[a-z]{30}){33}'.repeat(11),
    '(?P<one>\\d{100}x){100}',
    '\\pL{999,}'.repeat(20),
  ]
  for (const source of large) t.match(linearPattern(source), /simpler/, source.slice(0, 20))
  t.equal(compiled, 0)
  const fine = [
    'a{1000}'.repeat(4),
    '(?:ab?c*){330}'.repeat(3),
    '(a|b|c|d|e){1000}',
    '[[:alpha:]{}a-z\\]{1000}]{9}',
    '\\Qa{1000}{1000}{1000}\\E',
    '\\{1000}\\{1000}',
    'a{0}b{1000}',
    '(?i)^[\\w.+-]+@(?:[a-z0-9-]{1,63}\\.){1,8}[a-z]{2,63}$',
  ]
  for (const source of fine) t.type(linearPattern(source), 'function', source.slice(0, 20))
  t.end()
})
