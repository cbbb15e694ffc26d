import { createHash } from 'node:crypto'
import { categoryOf, type RecordedEvent } from '../../kernel/event.ts'

/** Events of one category of streams: their number, and an order-independent 128-bit digest in hexadecimal. */
export interface CategoryDigest {
  events: number
  digest: string
}

export type LogDigest = { [category: string]: CategoryDigest }

/** Sums events, so that two logs with the same events, each at the same revision, have the same digest. */
export class LogDigester {
  private readonly categories = new Map<string, { events: number; digest: Buffer }>()

  constructor(begun: LogDigest = {}) {
    for (const [category, { events, digest }] of Object.entries(begun))
      this.categories.set(category, { events, digest: Buffer.from(digest, 'hex') })
  }

  get events(): number {
    return [...this.categories.values()].reduce((sum, { events }) => sum + events, 0)
  }

  add(event: RecordedEvent): void {
    const { stream, revision, position, loggedAt, id, type, isJson, metadata, data } = event
    const head = JSON.stringify([stream, revision, position, loggedAt, id, type, isJson, metadata])
    const hash = createHash('sha256').update(head).update('\n').update(data).digest()
    const category = categoryOf(stream)
    const known = this.categories.get(category) ?? { events: 0, digest: Buffer.alloc(16) }
    known.events++
    for (let i = 0; i < 16; i++) known.digest[i] ^= hash[i]
    this.categories.set(category, known)
  }

  result(): LogDigest {
    const sorted = [...this.categories].sort(([one], [other]) => (one < other ? -1 : 1))
    return Object.fromEntries(
      sorted.map(([name, { events, digest }]) => [name, { events, digest: digest.toString('hex') }]),
    )
  }
}
