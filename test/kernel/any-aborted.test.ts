import { getEventListeners } from 'node:events'
import { test } from 'tap'
import { anyAborted } from '../../src/kernel/any-aborted.ts'

test('the first of several signals aborts one, with its reason', async (t) => {
  const [process, request] = [new AbortController(), new AbortController()]
  const { signal } = anyAborted(process.signal, request.signal)
  t.notOk(signal.aborted)
  request.abort(new Error('gone'))
  process.abort(new Error('too late'))
  t.match(signal, { aborted: true, reason: { message: 'gone' } })
  t.match(anyAborted(new AbortController().signal, process.signal).signal.reason, { message: 'too late' })
})

test('sources that live on keep nothing of what was released, or aborted', async (t) => {
  const lasting = new AbortController()
  for (let i = 0; i < 100; i++) {
    const call = new AbortController()
    const any = anyAborted(lasting.signal, call.signal)
    if (i % 2 === 0) call.abort()
    else any.release()
    t.equal(any.signal.aborted, i % 2 === 0)
  }
  t.same(getEventListeners(lasting.signal, 'abort'), [])
})
