import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import { OwnedCheckpoint } from '../../src/kit/consumers/checkpoint.ts'
import { realClock } from '../contracts/clocks.ts'
import { THINGS, thingId } from '../contracts/table-store-rows.ts'

/* A process that commits generations of rows with their checkpoint for ever and prints each that was acknowledged. */
const store = await openLmdbTableStore({ path: process.argv[2] as string, clock: realClock })
await store.declare(THINGS)
const owned = await OwnedCheckpoint.take(store, 'generations')
const begun = owned.at?.all ?? 0
for (let generation = begun + 1; ; generation += 1) {
  const changes = Array.from({ length: 60 }, (_, index) => ({
    table: 'things',
    scope: 's',
    id: thingId(index),
    row:
      (generation + index) % 5 === 0
        ? null
        : {
            status: `g${generation}`,
            name: `thing ${generation % 7}`,
            createdAt: generation,
            hubId: `hub-${index % 3}`,
          },
  }))
  await owned.commit(changes, { all: generation })
  process.stdout.write(`${generation} end\n`)
}
