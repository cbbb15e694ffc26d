import type { FileStore } from '../../engines/file-store.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { FairQueue } from '../../kernel/fair-queue.ts'
import { type OpenTable, openTable, type OpenTableOptions } from '../../kit/formats/open-table.ts'

/** Most threads that read files for requests at a time; further requests wait. */
const AT_ONCE_MAX = 2
const WAITING_MAX = 64
const DEADLINE_MS = 20_000

interface Waiting {
  begin(): void
  refuse(): void
}

/** Opens uploaded files, a few at a time; waiting organizations take turns. */
export class OpenFiles {
  private readonly files: Pick<FileStore, 'get'>
  private readonly clock: Clock
  private open = 0
  private readonly waiting = new FairQueue<Waiting>(WAITING_MAX)

  constructor({ files, clock }: { files: Pick<FileStore, 'get'>; clock: Clock }) {
    this.files = files
    this.clock = clock
  }

  /** @throws Failure invalid, too_large, unsupported_type of the file; overloaded, not_found. */
  async with<Result>(
    { organizationId, key }: { organizationId: string; key: string },
    options: Pick<OpenTableOptions, 'signal' | 'sheet' | 'expected'>,
    use: (table: OpenTable) => Promise<Result>,
  ): Promise<Result> {
    if (this.open >= AT_ONCE_MAX) await this.turn(organizationId)
    else this.open++
    try {
      const found = await this.files.get(key)
      if (found === undefined) throw new Failure('not_found')
      const table = await openTable(found.stream, { clock: this.clock, deadlineMs: DEADLINE_MS, ...options })
      try {
        return await use(table)
      } finally {
        await table.close()
      }
    } finally {
      // Hands the slot to the next in line directly, so that no newcomer takes it.
      const next = this.waiting.shift()
      if (next === undefined) this.open--
      else next.begin()
    }
  }

  /** @throws Failure overloaded */
  private turn(organizationId: string): Promise<void> {
    return new Promise((begin, reject) => {
      const refuse = (): void =>
        reject(
          new Failure('overloaded', {
            message: 'Too many files wait to be read; try again later.',
            retryAfterSeconds: 5,
          }),
        )
      this.waiting.push(organizationId, { begin, refuse })?.refuse()
    })
  }
}
