import { test } from 'tap'
import { defer } from '../../../src/kit/consumers/deferred.ts'
import { type Owned, SoleOwner } from '../../../src/kit/consumers/owners.ts'
import { FakeClock } from '../../support/fake-clock.ts'
import { keepErrors } from '../../support/open-services.ts'
import { until } from '../../support/service.ts'

const open = () => {
  const clock = new FakeClock()
  const errors: unknown[] = []
  const done: string[] = []
  const part = (name: string, isSlow: boolean, take: () => Promise<void>): Owned => ({
    name,
    isSlow,
    take: async () => {
      await take()
      done.push(`${name} taken`)
    },
    leave: async () => void done.push(`${name} left`),
  })
  return { clock, errors, done, part, owners: new SoleOwner({ clock, logger: keepErrors(errors) }) }
}

const atOnce = async (): Promise<void> => undefined

test('what is slow is taken while all else goes on, and left once it is taken', async (t) => {
  const { done, part, owners } = open()
  const loaded = defer()
  const joined = await owners.join([part('matcher-0', true, () => loaded.promise), part('history-0', false, atOnce)])
  t.same(done.splice(0), ['history-0 taken'])
  const borrowed = owners.borrow(['matcher-0'], async () => void done.push('borrowed'))
  loaded.resolve()
  await borrowed
  t.same(done.splice(0), ['matcher-0 taken', 'matcher-0 left', 'borrowed', 'matcher-0 taken'])
  await joined.leave()
  t.same(done.sort(), ['history-0 left', 'matcher-0 left'])
})

test('a service that ends while something slow is taken leaves it afterwards', async (t) => {
  const { done, part, owners } = open()
  const loaded = defer()
  const joined = await owners.join([part('matcher-0', true, () => loaded.promise)])
  const leaving = joined.leave()
  t.same(done, [])
  loaded.resolve()
  await leaving
  t.same(done, ['matcher-0 taken', 'matcher-0 left'])
})

test('what is slow and cannot be taken is tried again; a failure of all else ends the start', async (t) => {
  const { clock, errors, done, part, owners } = open()
  let tries = 0
  const failsOnce = async (): Promise<void> => {
    if (++tries === 1) throw new Error('torn')
  }
  const joined = await owners.join([part('matcher-0', true, failsOnce)])
  await until('the failure to be logged', () => errors.length === 1)
  t.match(errors, [{ consumer: 'matcher-0', error: 'Error: torn' }])
  clock.advance(100)
  await until('the next try', () => done.length === 1)
  await joined.leave()
  const torn = part('history-0', false, () => Promise.reject(new Error('torn')))
  await t.rejects(owners.join([torn]), { message: 'torn' })
})
