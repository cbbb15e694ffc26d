import { Failure } from '../../kernel/errors.ts'
import { wroteBefore } from '../commands/handle-command.ts'
import type { ResourceServices } from './declaration.ts'
import type { ResourceWriter } from './write.ts'
import type { WriteOrigin, Written } from './writes.ts'

/**
 * What `make` answers; where it is refused, what a request that was cut short made before, of which this is the repeat:
 * others may have changed since what a create is checked against. `make` draws from `origin.ids` for its event alone.
 * @throws Failure of `make`
 */
export const orMadeBefore = async (
  { log }: Pick<ResourceServices, 'log'>,
  writer: ResourceWriter,
  origin: WriteOrigin,
  id: string,
  make: () => Promise<Written>,
): Promise<Written> => {
  try {
    return await make()
  } catch (error) {
    if (!(error instanceof Failure) || error.status >= 500) throw error
    const wrote = await wroteBefore(log, `${writer.declaration.noun}-${id}`, origin.ids.next())
    if (wrote === undefined) throw error
    return { row: await writer.rowOf(id, await writer.load(id)), wrote }
  }
}
