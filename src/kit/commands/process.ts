import type { EventMetadata } from '../../kernel/event.ts'
import type { IdSource, Wrote } from '../http/route.ts'

/**
 * A command that writes several streams. What it is going to write is one fact, `processStarted`: before it nothing has
 * happened, after it everything will, even after a crash: any process carries on from that fact. `processFinished` ends it;
 * where a step was refused, `processRefused` stands before, and what the steps before it did is undone.
 */
export interface Process<Data> {
  key: ProcessKey<Data>
  /** One after the other. Steps that may be refused come first, so that little is to be undone. */
  steps: readonly Step<Data>[]
}

/** Names a kind of process, and says what its start keeps. `Data` is what JSON can hold, and all ids that its steps use. */
export interface ProcessKey<Data> {
  name: string
  /** Never there; ties `Data` to the key. */
  data?: Data
}

export interface Step<Data> {
  name: string
  /**
   * Looks at the state and writes what is missing: it may run again at any time, also beside itself. A failure that a
   * client would be answered (below 500, not to be tried again) refuses the whole command; any other is tried again.
   */
  run(data: Data, origin: OriginOf): Promise<Wrote | undefined>
  /** Takes back what `run` wrote, when a later step was refused. As `run`, but it must not refuse. */
  undo?(data: Data, origin: OriginOf): Promise<Wrote | undefined>
}

/** What a step writes with. `part` tells its writes apart. Time and ids are the same at each run, so that the log knows a repeated append. */
export type OriginOf = (part?: string) => StepOrigin

export interface StepOrigin {
  organizationId: string
  now: number
  ids: IdSource
  metadata: EventMetadata
}

/** What commands need of the runner of processes. */
export interface Processes {
  /**
   * Runs a process about a subject (the id of the user, the organization, …) to its end. Of one subject one process runs at
   * a time: what an earlier one left open is carried on first. `plan` then looks whether the command is allowed and answers
   * what it will write, or undefined when there is nothing to do; it may be called again.
   * @throws Failure of the plan, of the step that refused, conflict after lost races; anything else leaves the process open,
   * for the next caller or runner to carry on.
   */
  run<Data extends object>(
    key: ProcessKey<Data>,
    subject: string,
    origin: StepOrigin,
    plan: () => Promise<Data | undefined>,
  ): Promise<Wrote | undefined>
  /** Carries on what is open about a subject, so that its streams say the whole truth. @throws what keeps it open */
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

/** From here on nothing but undoing is left. */
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
