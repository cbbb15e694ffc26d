import { fork } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'tap'
import { openLmdbEventLog } from '../../../../src/engines/lmdb-log/lmdb-log.ts'
import { locationStream } from '../../../../src/features/locations/events.ts'
import { locationEntry } from '../../../../src/features/locations/location-entry.ts'
import { systemClock } from '../../../../src/kernel/system-clock.ts'
import { pointsOf } from '../../../support/ingest.ts'
import { folderOf } from '../../../support/folder-of.ts'

const ROUNDS = 3

test('what was acknowledged is in the log after SIGKILL, at any moment', async (t) => {
  const path = join(folderOf(t), 'log')
  let acked = 0
  for (let round = 0; round < ROUNDS; round++) {
    // The child sends point n as time `start + n` and tells which n are acknowledged, until it is killed.
    const child = fork('dist/test/support/ingest-child.js', [path, String(acked)])
    const last = await new Promise<number>((done, failed) => {
      let most = acked
      child.on('message', (n: number) => {
        most = n
        if (most >= acked + 2_000 * (round + 1)) child.kill('SIGKILL')
      })
      child.on('exit', (code, signal) =>
        signal === 'SIGKILL' ? done(most) : failed(new Error(`the child ended with ${code}`)),
      )
    })
    t.ok(last > acked, `${last - acked} points were acknowledged`)
    acked = last
    const log = await openLmdbEventLog({ path, clock: systemClock })
    const batches = []
    for (let partition = 0; partition < 4; partition++) {
      for (let from = 0; ; ) {
        const events = await log.read(locationStream(partition), from, 500)
        for (const event of events) {
          const entry = locationEntry(event, partition)
          if (entry.kind === 'points') batches.push(entry.batch)
        }
        if (events.length < 500) break
        from += events.length
      }
    }
    await log.close()
    const numbers = new Set(pointsOf(batches).map(({ lng }) => Math.round(lng * 1e5)))
    let missing = 0
    for (let n = 1; n <= acked; n++) if (!numbers.has(n)) missing++
    t.equal(missing, 0, `of ${acked} acknowledged points`)
  }
})
