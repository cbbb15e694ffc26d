import { type Box, boxOfDegrees } from '../../geo/box.ts'
import { invalid } from '../../kernel/errors.ts'
import type { JsonSchema } from '../../kernel/json.ts'
import { plainNumber } from './plain-number.ts'

export const BBOX_PARAMETER: JsonSchema = {
  type: 'string',
  maxLength: 200,
  description: 'west,south,east,north in degrees; west beyond east crosses the antimeridian.',
}

/** The box of a `bbox` parameter. @throws Failure invalid */
export const boxParameter = (text: string): Box => {
  const degrees = text.split(',').map(plainNumber)
  const [west, south, east, north] = degrees
  if (degrees.length !== 4 || !degrees.every(Number.isFinite))
    throw invalid('/bbox', 'must be west,south,east,north in degrees')
  if (south > north || south < -90 || north > 90) throw invalid('/bbox', 'must have south <= north within -90 and 90')
  if (Math.abs(west) > 180 || Math.abs(east) > 180)
    throw invalid('/bbox', 'must have west and east within -180 and 180')
  return boxOfDegrees(west, south, east, north)
}
