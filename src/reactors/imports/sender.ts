import { isDeepStrictEqual } from 'node:util'
import type { TableStore } from '../../engines/table-store.ts'
import type { ImportRequested } from '../../features/imports/events.ts'
import { assertMayWrite } from '../../features/imports/import-form.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import { callerNow } from '../callers/caller-now.ts'

interface SenderServices {
  tables: Pick<TableStore, 'get'>
  clock: Clock
}

/** The user who sent a file, with the rights that they had when the attempt began. */
export class Sender {
  readonly caller: UserCaller
  private readonly services: SenderServices
  private readonly asked: ImportRequested

  private constructor(services: SenderServices, asked: ImportRequested, caller: UserCaller) {
    this.services = services
    this.asked = asked
    this.caller = caller
  }

  /** @throws Failure forbidden for a sender who may not import any more */
  static async of(services: SenderServices, asked: ImportRequested): Promise<Sender> {
    return new Sender(services, asked, await senderOf(services, asked))
  }

  /**
   * Why a sender who has lost the right meanwhile gets no further row: what was made stays, and can be undone.
   * @throws Failure overloaded if rights changed otherwise: the next attempt goes on by the new ones
   */
  async refusal(): Promise<Failure | undefined> {
    try {
      const caller = await senderOf(this.services, this.asked)
      if (isDeepStrictEqual(caller, this.caller)) return undefined
    } catch (error) {
      if (error instanceof Failure && error.code === 'forbidden') return error
      throw error
    }
    throw new Failure('overloaded', { message: 'The rights of the user who sent the file changed meanwhile.' })
  }
}

const senderOf = async ({ tables, clock }: SenderServices, asked: ImportRequested): Promise<UserCaller> => {
  const caller = await callerNow(tables, asked.organizationId, asked.userId, clock.now())
  if (caller === undefined || !caller.permissions.has('import/data'))
    throw new Failure('forbidden', { message: 'The user who sent the file may not import any more.' })
  assertMayWrite(caller, asked.type, asked.mapping)
  return caller
}
