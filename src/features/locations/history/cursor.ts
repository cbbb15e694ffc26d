import type { Place } from '../../../engines/clickhouse-sql/points.ts'
import { invalid } from '../../../kernel/errors.ts'

const CURSOR = /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9a-z]{1,9})\.(asc|desc)$/

/** Where a page ended: its last point's place, and the direction that the walk has. Opaque to clients. */
export const encodeCursor = ({ trackerId, recordedAt }: Place, order: 'asc' | 'desc'): string =>
  Buffer.from(`${trackerId}.${recordedAt.toString(36)}.${order}`).toString('base64url')

/** @throws Failure invalid for anything that is no cursor of such a walk. */
export const decodeCursor = (cursor: string, order: 'asc' | 'desc'): Place => {
  const [, trackerId, time, direction] = CURSOR.exec(Buffer.from(cursor, 'base64url').toString()) ?? []
  if (trackerId === undefined || direction !== order)
    throw invalid('/cursor', 'must be a nextCursor of the same question')
  return { trackerId, recordedAt: Number.parseInt(time, 36) }
}
