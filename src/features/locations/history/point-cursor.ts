import type { PointCursor } from '../../../engines/clickhouse-sql/points.ts'
import { invalid } from '../../../kernel/errors.ts'
import { openCursor, sealCursor } from '../../../kit/http/question-cursor.ts'

/** End of a page: its last point. Opaque to clients. */
export const cursorOf = ({ trackerId, recordedAt }: PointCursor, fingerprint: string): string =>
  sealCursor(`${trackerId}.${recordedAt.toString(36)}`, fingerprint)

const PLACE = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9a-z]{1,9})$/

/** @throws Failure invalid if the text is no cursor of this question. */
export const placeOf = (cursor: string, fingerprint: string): PointCursor => {
  const [, trackerId, time] = PLACE.exec(openCursor(cursor, fingerprint)) ?? []
  if (trackerId === undefined) throw invalid('/cursor', 'is not a cursor of this list and these filters')
  return { trackerId, recordedAt: Number.parseInt(time, 36) }
}
