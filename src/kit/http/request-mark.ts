import type { TableDeclaration } from '../../kernel/table.ts'

/** Time for which an Idempotency-Key is known. */
export const KEPT_MS = 24 * 3_600_000

/** Requests begun under keys, according to the log, for those that the tables have forgotten. */
export const RECALLED: TableDeclaration = { name: 'recalled_requests', version: 1 }

/** Memory of one request. */
export interface RecalledRow {
  [field: string]: unknown
  fingerprint: string
  /** ms since the epoch. */
  startedAt: number
}

/** Characters of 6 bits each: enough to tell requests of a day apart, and bodies under one key. */
const ID = 22
const FINGERPRINT = 11

/** A request under a key, in the metadata of its events: the beginnings of its hashes, and its time. */
export const markOf = (id: string, { fingerprint, startedAt }: RecalledRow): string =>
  `${id.slice(0, ID)}${fingerprint.slice(0, FINGERPRINT)}${startedAt.toString(36)}`

/** The request of a mark: its place in RECALLED and its row. */
export const readMark = (mark: string): { scope: string; id: string; row: RecalledRow } => ({
  // They belong to no organization; so, in a cluster, they are spread over the servers.
  scope: mark[0],
  id: mark.slice(0, ID),
  row: {
    fingerprint: mark.slice(ID, ID + FINGERPRINT),
    startedAt: Number.parseInt(mark.slice(ID + FINGERPRINT), 36),
  },
})
