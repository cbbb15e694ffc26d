import { test } from 'tap'
import { summaryRows } from '../../../src/features/reports/summary.ts'
import { idFrom } from '../../../src/kit/commands/ids.ts'

const DAY_MS = 86_400_000
const FROM = Date.parse('2025-01-01T00:00:00Z')
const FLEET = 3_000
const scope = {
  organizationId: idFrom('organization'),
  trackerIds: 'all' as const,
  from: FROM,
  to: FROM + 400 * DAY_MS,
}

/** A history of a fleet; counts the questions that are open and how many trackers each asked for. */
const fleetHistory = () => {
  const seen = { open: 0, sizes: [] as number[] }
  const idOf = (n: number): string => `01900000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
  let found = 0
  const history = {
    rows: async (_sql: string, { limit }: { limit?: number } = {}) => {
      if (limit === undefined) return []
      const from = found
      found = Math.min(FLEET, found + limit)
      return Array.from({ length: found - from }, (_, i) => ({ tracker: idOf(from + i) }))
    },
    query: async function* (_sql: string, { trackers }: { trackers: string[] }, _format: string, signal: AbortSignal) {
      seen.open++
      seen.sizes.push(trackers.length)
      try {
        for (const tracker of trackers) {
          signal.throwIfAborted()
          yield Buffer.from(`${JSON.stringify({ tracker, period: 0, firstAt: FROM, lastAt: FROM })}\n`)
        }
      } finally {
        seen.open--
      }
    },
  }
  return { seen, history: history as never }
}

const names = async (_id: string, ids: readonly string[]) => ids.map(() => 'Van')

for (const per of ['day', 'total'] as const)
  test(`400 days of a fleet are summed some trackers at a time, per ${per}, until the client leaves`, async (t) => {
    const question = { per, timeZone: 'UTC', gapMs: 1_800_000 }
    const whole = fleetHistory()
    let rows = 0
    const forever = new AbortController().signal
    for await (const some of summaryRows(whole.history, names, scope, question, undefined, forever)) rows += some.length
    t.equal(rows, FLEET)
    t.ok(Math.max(...whole.seen.sizes) <= 250, `at most ${Math.max(...whole.seen.sizes)}`)

    const left = fleetHistory()
    const gone = new AbortController()
    const walk = async (): Promise<void> => {
      for await (const some of summaryRows(left.history, names, scope, question, undefined, gone.signal))
        if (some.length > 0) gone.abort(new Error('the client left'))
    }
    await t.rejects(walk(), { message: 'the client left' })
    t.equal(left.seen.open, 0)
    t.ok(left.seen.sizes.length < whole.seen.sizes.length / 4, `${left.seen.sizes.length} questions`)
  })
