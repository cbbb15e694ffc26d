import type { JsonObject } from '../../kernel/json.ts'
import { newBytes } from '../files/stored-files.ts'
import type { TakePlace } from './quotas.ts'

/** Takes places for the bytes of files that values name now and did not name before. @throws Failure quota */
export const takeBytes = async (take: TakePlace, values: JsonObject, before?: JsonObject): Promise<void> => {
  const bytes = newBytes(values, before)
  if (bytes > 0) await take('filesBytes', bytes)
}
