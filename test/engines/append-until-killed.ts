import { randomUUID } from 'node:crypto'
import { openLmdbEventLog } from '../../src/engines/lmdb-log/lmdb-log.ts'
import { realClock } from '../contracts/clocks.ts'

/* A process that appends for ever and prints what was acknowledged: stream, revision and id of the last event. */
const log = await openLmdbEventLog({ path: process.argv[2] as string, clock: realClock })

const writer = async (no: number): Promise<void> => {
  for (let round = 0; ; round += 1) {
    const stream = `${no % 2 === 0 ? 'hub' : 'locations'}-${no % 6}`
    const events = Array.from({ length: 1 + (round % 3) }, () => ({
      id: randomUUID(),
      type: 'pointsRecorded.v1',
      data: new Uint8Array(((round * 7919) % 20) * 1_000),
      isJson: false,
      metadata: { actor: `writer:${no}` },
    }))
    const { revision } = await log.append(stream, events, 'any')
    process.stdout.write(`${stream} ${revision} ${events.at(-1)?.id}\n`)
    if (round % 50 === 49) {
      await log.truncateBefore(stream, revision - 40)
      process.stdout.write(`${stream} truncated ${revision - 40}\n`)
    }
  }
}

await Promise.all(Array.from({ length: 12 }, (_, no) => writer(no)))
