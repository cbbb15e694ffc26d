import type { EventMetadata } from '../../kernel/event.ts'
import type { IdSource, Wrote } from '../http/route.ts'

/**
 * A command that writes several streams. Its plan is one fact, `processStarted`: before it nothing has happened, after
 * it everything will, even after a crash: any process continues from that fact. `processFinished` ends it; where a step
 * was refused, `processRefused` stands before, and the earlier steps are undone.
 */
export interface Process<Data> {
  key: ProcessKey<Data>
  /** Run one after the other. Steps that may be refused come first, so that little has to be undone. */
  steps: readonly Step<Data>[]
}

/** Names a kind of process and types the data kept at its start. `Data` is JSON, with all ids that its steps use. */
export interface ProcessKey<Data> {
  name: string
  /** Never set; ties `Data` to the key. */
  data?: Data
}

export interface Step<Data> {
  name: string
  /**
   * Looks at the state and writes the missing part: it may run again at any time, also concurrently. A failure that a
   * client would be answered (below 500, not to be retried) refuses the whole command; any other is retried.
   */
  run(data: Data, origin: OriginOf): Promise<Wrote | undefined>
  /** Takes back the writes of `run` when a later step was refused. As `run`, but it must not refuse. */
  undo?(data: Data, origin: OriginOf): Promise<Wrote | undefined>
}

/** Origin of a step's writes; `part` tells them apart. Time and ids are the same at each run, so repeats are known. */
export type OriginOf = (part?: string) => StepOrigin

export interface StepOrigin {
  organizationId: string
  now: number
  ids: IdSource
  metadata: EventMetadata
}

/** Interface of the runner of processes for commands. */
export interface Processes {
  /**
   * Runs a process about a subject (the id of the user, the organization, …) to its end. One process per subject runs
   * at a time: an open earlier one is completed first. `plan` then checks whether the command is allowed and answers
   * its writes, or undefined when there is nothing to do; it may be called again.
   * @throws Failure of the plan, of the step that refused, conflict after lost races; anything else leaves the process
   * open, for the next caller or runner to continue.
   */
  run<Data extends object>(
    key: ProcessKey<Data>,
    subject: string,
    origin: StepOrigin,
    plan: () => Promise<Data | undefined>,
  ): Promise<Wrote | undefined>
  /** Completes open processes about a subject, so that its streams are complete. @throws the failure of one */
  settle(subject: string): Promise<void>
}

export const processStream = (subject: string): string => `process-${subject}`

export const PROCESS = {
  started: 'processStarted',
  refused: 'processRefused',
  finished: 'processFinished',
} as const

export interface ProcessStarted {
  process: string
  organizationId: string
  data: object
  /** ms since the epoch. */
  at: number
}

/** From here on only undoing is left. */
export interface ProcessRefused {
  /** The step that was refused; those before it are undone. */
  step: string
  /** A code of the table of errors. */
  code: string
}

export interface ProcessFinished {
  process: string
  outcome: 'done' | 'refused'
}

export const defineProcess = <Data extends object>(
  key: ProcessKey<Data>,
  steps: Process<Data>['steps'],
): Process<Data> => ({
  key,
  steps,
})
