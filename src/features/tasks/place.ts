import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'

/** A place has both of its coordinates, or none. @throws Failure invalid */
export const assertPlace = ({ lat, lng }: JsonObject): void => {
  if ((lat == null) !== (lng == null))
    throw invalid(lat == null ? '/lat' : '/lng', 'is required where the other is there')
}

/** Place of a move, from its body. @throws Failure invalid */
export const placeOf = ({ lat, lng }: JsonObject): { place?: JsonObject } => {
  assertPlace({ lat, lng })
  return lat === undefined ? {} : { place: { lat, lng } }
}
