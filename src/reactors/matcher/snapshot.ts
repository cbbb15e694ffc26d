import { type EventLog, eventsBackwards, eventsOf } from '../../engines/event-log.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { decodeJson, encodeJson, type NewEvent, type RecordedEvent } from '../../kernel/event.ts'
import type { RevisionsInForce } from './fence-book.ts'
import type { Fences } from './fences.ts'
import type { PageRow } from './pages.ts'
import type { MatcherRoot, MatcherStore, StoredOrganization } from './store.ts'

/**
 * Events of the streams `matcher-state-<partition>`: the whole state of a partition's matcher, so that it can be rebuilt
 * where the location stream has been truncated. A snapshot is a begin, fences and pages, and an end that makes it count.
 */
const SNAPSHOT_BEGUN = 'snapshotBegun.v1'
const SNAPSHOT_FENCES = 'snapshotFences.v1'
const SNAPSHOT_PAGES = 'snapshotPages.v1'
const SNAPSHOT_ENDED = 'snapshotEnded.v1'

const matcherStateStream = (partition: number): string => `matcher-state-${partition}`

/** A whole captured state: the fences in force at one entry, and pages with their own last entries. */
export interface Captured {
  root: MatcherRoot
  fences: SnapshotFences[]
  pages: AsyncIterable<{ page: number; row: PageRow }>
}

export interface SnapshotSource {
  capture(): Promise<Captured>
  /** Resolves when all decisions are in the log. */
  settled(): Promise<void>
}

export interface SnapshotTarget {
  restore(root: MatcherRoot, revisionsOf: MatcherStore['revisions']): Promise<void>
  takePage(page: number, row: PageRow): void
}

interface SnapshotFences {
  organizationId: string
  geofences: RevisionsInForce['geofences']
}

interface SnapshotPages {
  pages: { page: number; row: Omit<PageRow, 'trackers' | 'lanes'> & { trackers: string; lanes: string } }[]
}

interface SnapshotEnded {
  /** Revision of the snapshot's first event. */
  from: number
}

/** A page of 32 trackers is some 10 KB; an event stays below 256 KiB. */
const PAGES_PER_EVENT = 16
const FENCES_PER_EVENT = 2_000

/**
 * Writes a snapshot of a partition and hides the one before, unless that goes as far. Answers the revision of the location
 * stream up to which the newest goes: earlier entries may be truncated.
 */
export const writeSnapshot = async (
  log: EventLog,
  partition: number,
  matcher: SnapshotSource,
  now: number,
): Promise<number> => {
  const stream = matcherStateStream(partition)
  const ids = idSource(now)
  const from = (await log.head(stream)) + 1
  let revision = from - 1
  const write = async (type: string, data: object): Promise<void> => {
    const event: NewEvent = {
      id: ids.next(),
      type,
      data: encodeJson(data),
      isJson: true,
      metadata: { actor: 'reactor:match-geofences' },
    }
    revision = (await log.append(stream, [event], revision < 0 ? 'none' : revision)).revision
  }
  const { root, fences, pages } = await matcher.capture()
  // Who stood still may be the owner no longer: the next one has gone further, and the log may begin behind this state.
  const newest = await newestSnapshot(log, partition)
  if (newest >= root.at) return newest
  await write(SNAPSHOT_BEGUN, root)
  for (const { organizationId, geofences } of fences) {
    for (let from = 0; from < geofences.length; from += FENCES_PER_EVENT) {
      await write(SNAPSHOT_FENCES, {
        organizationId,
        geofences: geofences.slice(from, from + FENCES_PER_EVENT),
      } satisfies SnapshotFences)
    }
  }
  const group: SnapshotPages['pages'] = []
  for await (const { page, row } of pages) {
    group.push({ page, row: { ...row, trackers: textOf(row.trackers), lanes: textOf(row.lanes) } })
    if (group.length === PAGES_PER_EVENT)
      await write(SNAPSHOT_PAGES, { pages: group.splice(0) } satisfies SnapshotPages)
  }
  if (group.length > 0) await write(SNAPSHOT_PAGES, { pages: group } satisfies SnapshotPages)
  await matcher.settled()
  await write(SNAPSHOT_ENDED, { from } satisfies SnapshotEnded)
  await log.truncateBefore(stream, from)
  return root.at
}

/** Entry of an organization in a snapshot's root: its geofences stand in events of their own. */
export const capturedOrganization = ({ organizationId, through, groups }: Fences): StoredOrganization => ({
  organizationId,
  through,
  groups: [...groups].map(([geofenceGroupId, { revision }]) => ({ geofenceGroupId, revision })),
  chunks: [],
})

export const capturedFences = ({ organizationId, chunks }: Fences): SnapshotFences => ({
  organizationId,
  geofences: chunks
    .flat()
    .flatMap((fence) => (fence === undefined ? [] : [{ geofenceId: fence.geofenceId, revision: fence.revision }])),
})

/** Restores the newest whole snapshot of a partition, if there is one. */
export const readSnapshot = async (
  log: Pick<EventLog, 'read'>,
  partition: number,
  matcher: SnapshotTarget,
): Promise<boolean> => {
  const ended = await newestEnd(log, partition)
  if (ended === undefined) return false
  let root: MatcherRoot | undefined
  let isWhole = false
  const geofences = new Map<string, RevisionsInForce['geofences']>()
  const pages: SnapshotPages['pages'] = []
  const { from } = decodeJson<SnapshotEnded>(ended.data)
  for await (const event of eventsOf(log, matcherStateStream(partition), from, ended.revision)) {
    if (event.type === SNAPSHOT_BEGUN) root = decodeJson<MatcherRoot>(event.data)
    else if (event.type === SNAPSHOT_PAGES) pages.push(...decodeJson<SnapshotPages>(event.data).pages)
    else if (event.type === SNAPSHOT_FENCES) {
      const part = decodeJson<SnapshotFences>(event.data)
      geofences.set(part.organizationId, [...(geofences.get(part.organizationId) ?? []), ...part.geofences])
    } else if (event.type === SNAPSHOT_ENDED) isWhole = true
  }
  // The next snapshot may have hidden the rest meanwhile.
  if (root === undefined || !isWhole) return false
  await matcher.restore(root, async ({ organizationId, groups }) => ({
    groups,
    geofences: geofences.get(organizationId) ?? [],
  }))
  for (const { page, row } of pages)
    matcher.takePage(page, { ...row, trackers: bytesOf(row.trackers), lanes: bytesOf(row.lanes) } as PageRow)
  return true
}

/** Revision of the location stream up to which the newest whole snapshot goes, -1 where there is none. */
export const newestSnapshot = async (log: Pick<EventLog, 'read'>, partition: number): Promise<number> => {
  const ended = await newestEnd(log, partition)
  if (ended === undefined) return -1
  const [begun] = await log.read(matcherStateStream(partition), decodeJson<SnapshotEnded>(ended.data).from, 1)
  return begun?.type === SNAPSHOT_BEGUN ? decodeJson<MatcherRoot>(begun.data).at : -1
}

/** The end of the newest whole snapshot; later events belong to an unfinished one. */
const newestEnd = async (log: Pick<EventLog, 'read'>, partition: number): Promise<RecordedEvent | undefined> => {
  for await (const event of eventsBackwards(log, matcherStateStream(partition), 'end', 1))
    if (event.type === SNAPSHOT_ENDED) return event
  return undefined
}

const textOf = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('base64')
const bytesOf = (text: string): Uint8Array => new Uint8Array(Buffer.from(text, 'base64'))
