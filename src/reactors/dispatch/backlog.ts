import { RunOrder } from './run-order.ts'

/** Runs of one automation and partition that are held in memory, of each kind (in order, alone); the others wait in the table. */
export const RUNS_IN_MEMORY_MAX = 500
/** Runs are read back from the table when fewer than this are in memory. */
export const RUNS_LOW = RUNS_IN_MEMORY_MAX / 2

/** The owed and unpaid runs of one automation in one partition. */
export interface Backlog {
  automationId: string
  organizationId: string
  order: RunOrder
  /** Runs that keep their order and are in the table only: they come after those in memory. */
  inOrderStored: number
  /** Sequence of the last run taken into memory in order. */
  lastSequence: number
  /** Runs that go on alone and are in the table only: they are due after those in memory. */
  aloneStored: number
  /** Due time of the first of these, ms since the epoch. */
  aloneStoredDueAt: number
  reading: boolean
}

export const newBacklog = (automationId: string, organizationId: string): Backlog => ({
  automationId,
  organizationId,
  order: new RunOrder(),
  inOrderStored: 0,
  lastSequence: 0,
  aloneStored: 0,
  aloneStoredDueAt: Number.POSITIVE_INFINITY,
  reading: false,
})

export const countOf = (backlog: Backlog): number => backlog.order.size + backlog.inOrderStored + backlog.aloneStored

export const wantsInOrder = (backlog: Backlog): boolean => backlog.inOrderStored > 0 && backlog.order.inOrder < RUNS_LOW
export const wantsAlone = (backlog: Backlog): boolean => backlog.aloneStored > 0 && backlog.order.alone < RUNS_LOW
/** Memory has room for runs that are in the table only. */
export const hasRoom = (backlog: Backlog): boolean => wantsInOrder(backlog) || wantsAlone(backlog)
