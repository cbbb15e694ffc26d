import { setTimeout as pause } from 'node:timers/promises'
import { test } from 'tap'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import type { Fix } from '../../src/cli/trace-file.ts'
import { folderOf } from '../support/folder-of.ts'
import { freshlySeeded } from '../support/random.ts'
import { tracksOf } from '../support/real-day.ts'
import { withoutRedis } from '../support/redis-server.ts'
import { openRoleProcesses, type RoleProcesses } from '../support/role-processes.ts'
import { call, until } from '../support/service.ts'
import { beginDay, checkDay, checkRebuilt, checkRevoked } from '../support/stream-checks.ts'
import { watchPositions } from '../support/watch-positions.ts'

/** Of each kind for each process, as `npm run faults:roles` has it; without it, `SOME` of each kind at processes that the seed chooses. */
const TIMES = Number(process.env.WAYMARK_TEST_ROLE_FAULTS ?? 0)
const SOME = 2
const FRAME = 10
const FRAMES = 60
/** Host that is cut off without being told so. */
const APART = 'matcher'
const FREEZE_MS_MAX = 4_000
/** Longer than the life of a lease. */
const CUT_OFF_MS_MAX = 6_000

type Random = () => number
type Fault = (processes: RoleProcesses, name: string, random: Random) => Promise<void>

const FAULTS: { [kind: string]: Fault } = {
  kill: async (processes, name) => {
    await processes.get(name).kill()
    await processes.start(name)
  },
  freeze: async (processes, name, random) => {
    const { process } = processes.get(name)
    process.kill('SIGSTOP')
    await pause(random() * FREEZE_MS_MAX)
    process.kill('SIGCONT')
  },
  halfOpen: async ({ ways }, name, random) => {
    const own = ways.get(name) ?? []
    for (const way of own) way.silence()
    await pause(random() * CUT_OFF_MS_MAX)
    const isForgotten = random() < 0.5
    for (const way of own) isForgotten ? way.speak() : way.heal()
  },
}

const shuffled = <One>(all: readonly One[], random: Random): One[] =>
  all
    .map((one) => ({ one, at: random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ one }) => one)

/** Each of its faults for each process in some order, a kill beside one that heals by itself; `begun` is told how many have begun. */
const doFaults = async (processes: RoleProcesses, random: Random, begun: (part: number) => void): Promise<void> => {
  const faults = shuffled(
    Object.keys(FAULTS).flatMap((kind) => {
      const names = kind === 'halfOpen' ? [...processes.ways.keys()] : [...processes.running.keys()]
      const times = Array.from({ length: Math.max(1, TIMES) }, () => names).flat()
      return (TIMES > 0 ? times : shuffled(times, random).slice(0, SOME)).map((name) => ({ name, kind }))
    }),
    random,
  )
  const under = new Map<string, Promise<void>>()
  let count = 0
  for (const { name, kind } of faults) {
    // Two at a time, of two processes, of which at most one starts.
    while (under.size > 1 || under.has(name) || (kind === 'kill' && under.size > 0)) await Promise.race(under.values())
    begun(++count / faults.length)
    await pause(random() * 400) // the moment itself is what is random here
    under.set(
      name,
      FAULTS[kind](processes, name, random).finally(() => under.delete(name)),
    )
  }
  await Promise.all(under.values())
}

/** Sends frames to one ingress process or the other, as far on as the faults are, until each is acknowledged. */
const sendBeside = async (
  processes: RoleProcesses,
  key: string,
  fixes: readonly Fix[],
  progress: () => number,
): Promise<number> => {
  let frame = 0
  for (let turn = 0; frame * FRAME < fixes.length; turn++) {
    try {
      const gateway = await IngestClient.connect(processes.get(`ingress-${1 + (turn % 2)}`).url, key)
      for (; frame * FRAME < fixes.length; frame++) {
        await until('the next fault', () => progress() >= (frame * FRAME) / fixes.length)
        await gateway.send(fixes.slice(frame * FRAME, (frame + 1) * FRAME))
        await Promise.race([
          gateway.drained(),
          pause(FREEZE_MS_MAX + 1_000).then(() => Promise.reject(new Error(TOO_LONG))),
        ])
      }
      gateway.close()
    } catch (error) {
      if (!/closed the connection|cannot connect/.test(String(error))) throw error
      await pause(50)
    }
  }
  return frame * FRAME
}

/** A device that hears nothing for so long connects elsewhere. */
const TOO_LONG = 'the device closed the connection: nothing came'

test('each role killed, frozen and cut off at random moments under load: everything comes out as computed from the points', {
  skip: withoutRedis,
  timeout: 900_000 + TIMES * 600_000,
}, async (t) => {
  const random = freshlySeeded(t)
  const folder = folderOf(t)
  const processes = await openRoleProcesses(t, folder, [APART])
  const api = { url: processes.get('api').url }
  const begun = await beginDay(t, api, FRAME * FRAMES)
  const { day, setting, token, revoked } = begun

  let progress = 0
  const sending = sendBeside(processes, setting.ingestKey, day.fixes, () => progress)
  sending.catch(() => undefined)
  await doFaults(processes, random, (part) => (progress = part))
  t.equal(await sending, day.fixes.length, 'all is acknowledged in the end')

  await until(
    'the API',
    async () => (await call(api, 'GET', '/user', { token }).catch(() => undefined))?.status === 200,
  )
  const repeats = await checkDay(t, api, begun)
  t.comment(`${repeats} deliveries were repeated under their own id`)
  await checkRevoked(t, api, revoked)
  await checkRebuilt(t, processes.get('projector').data, ['latest-position', 'matcher'])
  const newest = [...tracksOf(day.fixes).values()].map((track) => track[track.length - 1].recordedAt).sort()
  for (const name of ['live-1', 'live-2']) {
    const watching = await watchPositions(processes.get(name), token)
    await until(`positions at ${name}`, () => {
      const seen = [...watching.newest.values()].map(({ recordedAt }) => Date.parse(recordedAt)).sort()
      return seen.length === newest.length && seen.every((at, i) => at === newest[i])
    })
    watching.close()
  }
})
