import { readFileSync } from 'node:fs'
import { performance } from 'node:perf_hooks'
import { idFrom } from '../../src/kit/commands/ids.ts'
import { ask, type Service } from '../../test/support/service.ts'
import { round } from './fresh-service.ts'

const EACH = 200
const PER_SECOND = 500
const STATES = ['new', 'assigned', 'inProgress', 'finished']
const DAY_MS = 86_400_000
const TICK_MS = 10

const day = (n: number): string => new Date(Date.UTC(2024, 0, 1) + (n % 700) * DAY_MS).toISOString().slice(0, 10)
const hub = (n: number): string => idFrom('bench', 'hub', n % 50)
const state = (n: number): string => STATES[n % STATES.length]
const corner = (n: number): [number, number] => [19 + ((n * 37) % 3_900) / 1000, 50 + ((n * 53) % 2_900) / 1000]

/** Questions by their filters; no two are the same. */
const QUESTIONS: { [name: string]: (n: number) => string } = {
  'a day and a state, by priority': (n) =>
    `state=${state(n)}&from=${day(n * 3)}T00:00:00Z&to=${day(n * 3)}T23:59:59Z&sortBy=priority`,
  'a week, by title': (n) => `from=${day(n * 3)}T00:00:00Z&to=${day(n * 3 + 6)}T23:59:59Z&sortBy=title`,
  'a hub and a state, newest first': (n) => `hubId=${hub(n >> 2)}&state=${state(n)}&sortBy=createdAt&sortOrder=desc`,
  'a hub and a state, by title': (n) => `hubId=${hub(n >> 2)}&state=${state(n)}&sortBy=title`,
  'an assignee': (n) => `assigneeId=${idFrom('bench', 'user', n)}`,
  'a team, by priority': (n) => `teamId=${idFrom('bench', 'team', n)}&sortBy=priority`,
  'a tenth of a degree': (n) => {
    const [west, south] = corner(n)
    return `bbox=${west},${south},${west + 0.1},${south + 0.1}`
  },
  'two words': (n) => `q=Visit%20${n * 97}`,
}

/** CPU time of the service's main thread, ms. */
const mainMs = ({ process: { pid } }: Service): number => {
  const text = readFileSync(`/proc/${pid}/task/${pid}/stat`, 'utf8')
  const parts = text.slice(text.lastIndexOf(') ') + 2).split(' ')
  return TICK_MS * (Number(parts[11]) + Number(parts[12]))
}

const summed = (times: number[]) => {
  times.sort((a, b) => a - b)
  return { 'median, ms': round(times[times.length >> 1]), 'p99, ms': round(times[Math.floor(times.length * 0.99)]) }
}

/** Pages not requested before: one at a time by their filters, then all kinds at an even pace. */
export const firstPages = async (service: Service, token: string): Promise<object> => {
  const timed = async (question: string, limit: number): Promise<number> => {
    const askedAt = performance.now()
    await ask(service, 'GET', `/tasks?limit=${limit}&${question}`, { token })
    return performance.now() - askedAt
  }
  const table: { [name: string]: object } = {}
  for (const [name, question] of Object.entries(QUESTIONS)) {
    const before = mainMs(service)
    const times: number[] = []
    for (let n = 0; n < EACH; n++) times.push(await timed(question(n), 20))
    table[`first pages of ${name}`] = {
      ...summed(times),
      'CPU of the main thread, ms': round((mainMs(service) - before) / EACH),
    }
  }
  // Pages of another size are pages of their own.
  const mixed = Object.values(QUESTIONS).flatMap((question) => Array.from({ length: EACH }, (_, n) => question(n)))
  const answers: Promise<number>[] = []
  const begun = performance.now()
  for (const [n, question] of mixed.entries()) {
    const waitMs = begun + (1_000 * n) / PER_SECOND - performance.now()
    if (waitMs > 0) await new Promise((resume) => setTimeout(resume, waitMs))
    answers.push(timed(question, 21))
  }
  table[`first pages of all kinds, ${PER_SECOND} a second`] = summed(await Promise.all(answers))
  return table
}
