import { test } from 'tap'
import type { RedisConnection } from '../../src/engines/redis-tables/connection.ts'
import { Places } from '../../src/engines/redis-tables/places.ts'
import { Registry } from '../../src/engines/redis-tables/registry.ts'

const SCOPES = Array.from({ length: 5_000 }, (_, no) => `org-${String(no).padStart(4, '0')}`)

/** A set in whose walk another server takes over, and has the members elsewhere; it grows meanwhile. */
const setThatMoves = () => {
  const members = SCOPES.slice(0, -1)
  let walks = 0
  const call = async (_key: string, [command, , cursor, , count]: (string | Uint8Array)[]): Promise<unknown> => {
    if (command === 'SCARD') return members.length
    const from = Number(cursor)
    if (from === 0) walks++
    if (walks === 2 && from === 0) members.push(SCOPES.at(-1) as string)
    const isMoved = walks === 1 && from > 2_000
    const there = isMoved ? members.toReversed() : members
    const to = from + Number(count)
    const some = there.slice(from, to).map((member) => Buffer.from(member))
    return [Buffer.from(String(to < members.length ? to : 0)), some]
  }
  return { connection: { call } as unknown as RedisConnection, walks: () => walks }
}

test('a walk over scopes that missed some, as another server took over, is made again until none is missing', async (t) => {
  const { connection, walks } = setThatMoves()
  t.strictSame(await new Registry(connection, new Places('p')).scopesOf('g'), SCOPES)
  t.equal(walks(), 2)
})
