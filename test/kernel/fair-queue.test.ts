import { test } from 'tap'
import { FairQueue } from '../../src/kernel/fair-queue.ts'

const drained = (queue: FairQueue<string>): string[] => {
  const items: string[] = []
  for (let item = queue.shift(); item !== undefined; item = queue.shift()) items.push(item)
  return items
}

test('sources have their turns one after the other, each in its own order', async (t) => {
  const queue = new FairQueue<string>(10)
  for (const item of ['a1', 'a2', 'a3', 'b1', 'c1', 'b2']) t.equal(queue.push(item[0], item), undefined)
  t.equal(queue.length, 6)
  t.same(drained(queue), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3'])
  t.equal(queue.length, 0)
})

test('in a full queue the newest item of the source with the most makes way for sources with fewer', async (t) => {
  const queue = new FairQueue<string>(4)
  for (const item of ['a1', 'a2', 'a3', 'a4']) queue.push('a', item)
  t.equal(queue.push('a', 'a5'), 'a5', 'not for its own')
  t.equal(queue.push('b', 'b1'), 'a4')
  t.equal(queue.push('b', 'b2'), 'a3')
  t.equal(queue.push('b', 'b3'), 'b3', 'not for one that has as many')
  t.equal(queue.push('c', 'c1'), 'a2')
  t.equal(queue.push('d', 'd1'), 'b2')
  t.equal(queue.push('e', 'e1'), 'e1', 'each has one')
  t.same(drained(queue), ['a1', 'b1', 'c1', 'd1'])
})
