/** Channels that follow the log by position alone: each has one part of cursors, after those of the partitions. */
export const FEEDS = ['job', 'automation', 'task', 'notification'] as const
export type FeedName = (typeof FEEDS)[number]
/** The feed whose events the ring of an organization remembers too. */
export const REMEMBERED_FEED: FeedName = 'job'

/** Part of cursors that a feed moves. */
export const partOf = (feed: FeedName, partitions: number): number => partitions + FEEDS.indexOf(feed)

/**
 * Position in one partition's transitions: the event, and the number of its decisions seen. For a feed a position in
 * the log up to which all is seen, and for automations the number of runs of the next event after it.
 */
export interface Reach {
  revision: number
  seen: number
}

/** Stands for every decision of an event; an event never has this many. */
export const ALL_SEEN = 65_535

/** A reach for every partition, then for every feed: the events of its organization that a client has seen. */
export type EventVector = readonly Reach[]

const FORMAT = 5

/** Opaque for clients: the mark of the log (a restored log has another one), then two varints for each part. */
export const encodeCursor = (logMark: number, vector: EventVector): string => {
  const bytes: number[] = [FORMAT, logMark >>> 24, (logMark >>> 16) & 255, (logMark >>> 8) & 255, logMark & 255]
  for (const { revision, seen } of vector) {
    pushVarint(bytes, revision + 1)
    pushVarint(bytes, seen)
  }
  return Buffer.from(bytes).toString('base64url')
}

/** Undefined for a foreign one: another format, log, or number of parts. */
export const decodeCursor = (cursor: string, logMark: number, parts: number): Reach[] | undefined => {
  if (cursor.length > 64 + parts * 24) return undefined
  const bytes = Buffer.from(cursor, 'base64url')
  if (bytes.length < 5 || bytes[0] !== FORMAT || bytes.readUInt32BE(1) !== logMark >>> 0) return undefined
  const reader = { bytes, at: 5 }
  const vector: Reach[] = []
  for (let part = 0; part < parts; part++) {
    const revision = readVarint(reader)
    const seen = readVarint(reader)
    if (revision === undefined || seen === undefined) return undefined
    vector.push({ revision: revision - 1, seen })
  }
  return reader.at === bytes.length ? vector : undefined
}

/** Whether one reach is at or behind the other. */
export const isBehind = (reach: Reach, other: Reach): boolean =>
  reach.revision < other.revision || (reach.revision === other.revision && reach.seen <= other.seen)

/** Everything that either of two has seen. */
export const furthest = (one: EventVector, other: EventVector): Reach[] =>
  one.map((reach, part) => (isBehind(reach, other[part]) ? other[part] : reach))

const pushVarint = (bytes: number[], value: number): void => {
  while (value >= 128) {
    bytes.push((value % 128) | 128)
    value = Math.floor(value / 128)
  }
  bytes.push(value)
}

const readVarint = (reader: { bytes: Buffer; at: number }): number | undefined => {
  let value = 0
  for (let scale = 1; scale < 2 ** 53; scale *= 128) {
    const byte = reader.bytes[reader.at++]
    if (byte === undefined) return undefined
    value += (byte & 127) * scale
    if (byte < 128) return Number.isSafeInteger(value) ? value : undefined
  }
  return undefined
}
