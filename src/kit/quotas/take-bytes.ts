import { allEnded } from '../../kernel/all-ended.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { newBytes } from '../files/stored-files.ts'
import type { TakePlace } from './quotas.ts'

/** Takes places for the bytes of files that values name now and did not name before. @throws Failure quota */
export const takeBytes = async (take: TakePlace, values: JsonObject, before?: JsonObject): Promise<void> => {
  const bytes = newBytes(values, before)
  if (bytes > 0) await take('filesBytes', bytes)
}

/** Takes a place for a new record, and those for the bytes of its files. @throws Failure quota */
export const takeNew = async (take: TakePlace, name: string, values: JsonObject): Promise<void> => {
  await allEnded([take(name), takeBytes(take, values)])
}
