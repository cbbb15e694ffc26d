import type { Appended, ExpectedRevision } from '../event-log.ts'
import type { PreparedEvent } from './frame.ts'

interface Waiting<Answer> {
  stream: string
  resolve(answer: Answer): void
  reject(error: unknown): void
}

export interface WaitingAppend extends Waiting<Appended> {
  kind: 'append'
  events: PreparedEvent[]
  expected: ExpectedRevision
  bytes: number
}

interface WaitingTruncation extends Waiting<void> {
  kind: 'truncate'
  /** The first remaining revision; `all` erases the stream. */
  before: number | 'all'
}

interface WaitingProbe extends Waiting<void> {
  kind: 'probe'
  bytes: number
}

/** Work that waits for the next commit. */
export type Job = WaitingAppend | WaitingTruncation | WaitingProbe
