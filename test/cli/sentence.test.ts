import { test } from 'tap'
import { sentenceOf } from '../../src/cli/sentence.ts'
import { Failure } from '../../src/kernel/errors.ts'

test('what went wrong is one line, and says what a person can act on', (t) => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:6379'), { code: 'ECONNREFUSED' })
  const said: [error: unknown, sentence: string][] = [
    [new Error("Cannot find package 'lmdb'\nRequire stack:\n- /app/a.js"), "Cannot find package 'lmdb'"],
    [new Error('\n  Code: 62. Syntax error  \n at 0x0'), 'Code: 62. Syntax error'],
    [new Failure('internal', { cause: new Error('the disk is full\nat write') }), 'the disk is full'],
    [new AggregateError([refused, refused]), refused.message],
    [new Error(''), 'Error'],
    [new TypeError('x is not a function'), 'x is not a function'],
    ['a text', 'a text'],
    [undefined, 'undefined'],
  ]
  for (const [error, sentence] of said) t.equal(sentenceOf(error), sentence)
  t.end()
})
