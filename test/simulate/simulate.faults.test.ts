import { test } from 'tap'
import { POINTS_RECORDED } from '../../src/features/locations/events.ts'
import { FAULTS } from './faults.ts'
import { type Outcome, simulate } from './simulate.ts'

const RUNS = 200

const told = ({ seed, faults, lines }: Outcome): string =>
  [`repeat it with: npm run simulate -- --seed ${seed} --runs 1`, ...faults, ...lines].join('\n')

test(`all invariants hold in ${RUNS} runs with faults of every kind`, { timeout: 900_000 }, async (t) => {
  const happened = new Map<string, number>()
  let points = 0
  let transitions = 0
  for (let seed = 1; seed <= RUNS; seed++) {
    const outcome = await simulate(seed)
    if (outcome.faults.length > 0) return t.fail(told(outcome))
    points += outcome.points
    transitions += outcome.transitions
    for (const kind of outcome.happened) happened.set(kind, (happened.get(kind) ?? 0) + 1)
  }
  for (const kind of FAULTS) t.ok((happened.get(kind) ?? 0) > 10, `${kind} happened ${happened.get(kind)} times`)
  t.ok(points > RUNS * 10 && transitions > RUNS * 5, `${points} points, ${transitions} transitions`)
})

test('a seed gives the same run each time, and another seed another one', async (t) => {
  const [first, other, again] = [await simulate(7), await simulate(8), await simulate(7)]
  t.equal(again.fingerprint, first.fingerprint, told(again))
  t.same([again.steps, again.elapsedMs, again.lines], [first.steps, first.elapsedMs, first.lines])
  t.not(other.fingerprint, first.fingerprint)
})

test('engines that break their promises are found', async (t) => {
  let appends = 0
  const forgetful = await simulate(4, {
    kinds: [],
    prepare: ({ log }) => {
      const append = log.append.bind(log)
      log.append = (stream, events, expected) =>
        events[0].type === POINTS_RECORDED && ++appends % 3 === 0
          ? { revision: log.head(stream), position: log.headPosition() }
          : append(stream, events, expected)
    },
  })
  t.ok(appends >= 3, `${appends} appends of points`)
  t.match(forgetful.faults.join(), 'acknowledged points are not in the log')
  const deaf = await simulate(1, { kinds: [], prepare: ({ receiver }) => (receiver.failing = 1) })
  t.same(deaf.faults, [], 'what fails is tried again once the receiver answers')
  const lost = await simulate(1, {
    kinds: [],
    prepare: ({ history }) => {
      history.insert = () => undefined
    },
  })
  t.match(lost.faults.join(), 'points of the log are not in the history')
})
