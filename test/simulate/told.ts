import type { Host } from './host.ts'

/** What clients were told. */
export interface Told {
  /** `<tracker> <ms since the epoch>` of every point that was acknowledged. */
  points: Set<string>
  /** Ids of roles whose creation was acknowledged, with the name. */
  roles: Map<string, string>
  /** By the id of its event, the stream of a fence and the revision at which an edit was acknowledged. */
  edits: Map<string, { stream: string; revision: number }>
  /** By the id that the event would have, streams of edits that were refused: the fence has changed since it was seen. */
  refused: Map<string, string>
  /** Ids of exports that were taken. */
  exports: Set<string>
  /** Whether the deletion of the role was acknowledged that has an heir. */
  isRoleReplaced: boolean
}

/** An event as a dashboard is told of it. */
export interface ToldEvent {
  channel: string
  event: { _id: string; version?: number; state?: string; gone?: true }
}

/** Whoever asks processes until they are answered, and notes what they were told. */
export interface Asking {
  readonly told: Told
  /** How many are not yet done. */
  open: number
  /** Asks a process, and another one where no answer comes or the answer is to come again. */
  ask<Answer, Refusal = never>(
    call: (host: Host) => Promise<Answer>,
    done: (answer: Answer | Refusal) => void,
    understood?: (error: unknown) => Refusal | undefined,
  ): void
}
