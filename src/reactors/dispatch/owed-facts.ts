import { APPEND_BYTES_MAX } from '../../engines/event-log.ts'
import { RUNS_OWED, type RunsOwed } from '../../features/automations/events.ts'
import type { Fact } from '../../kernel/event.ts'

type Owed = RunsOwed['owed'][number]

export const RUNS_PER_EVENT_MAX = 500
const EVENT_BYTES_MAX = Math.floor(APPEND_BYTES_MAX / 4)

/** A fact to append, with its size as JSON at most. */
export interface OwedFact {
  fact: Fact<string, RunsOwed>
  bytes: number
}

/** Packs the runs owed by several events into facts that fit an append; only an event too large for one is cut. */
export class OwedFacts {
  private readonly facts: OwedFact[] = []
  private readonly source: Pick<RunsOwed, 'source' | 'owedAt'>
  private sequence: number
  private part: Owed[] = []
  private runs = 0
  private bytes = 0
  private sourceAt = -1

  constructor(source: RunsOwed['source'], owedAt: number, firstSequence: number) {
    this.source = { source, owedAt }
    this.sequence = firstSequence
  }

  /** @param sourceAt place of the event, which comes after those before */
  add(sourceAt: number, owed: readonly Owed[]): void {
    const runs = owed.reduce((sum, one) => sum + one.runs.length, 0)
    const bytes = owed.reduce((sum, one) => sum + bytesOf(one), 0)
    if (!this.hasRoom(runs, bytes)) this.close(true)
    this.sourceAt = sourceAt
    for (const one of owed) {
      if (!this.hasRoom(one.runs.length, bytesOf(one))) this.close(false)
      this.part.push(one)
      this.runs += one.runs.length
      this.bytes += bytesOf(one)
    }
  }

  done(): OwedFact[] {
    if (this.sourceAt >= 0) this.close(true)
    return this.facts
  }

  private hasRoom(runs: number, bytes: number): boolean {
    return this.part.length === 0 || (this.runs + runs <= RUNS_PER_EVENT_MAX && this.bytes + bytes <= EVENT_BYTES_MAX)
  }

  private close(complete: boolean): void {
    const { source, sourceAt, sequence: firstSequence, part: owed, bytes } = this
    const data: RunsOwed = { ...source, sourceAt, complete, firstSequence, owed }
    this.facts.push({ fact: { type: RUNS_OWED, data }, bytes: bytes + TRIGGER_BYTES })
    this.sequence += this.runs
    this.part = []
    this.runs = this.bytes = 0
  }
}

/** Automations that these facts owe runs to: organizations by automation. */
export const automationsOf = (facts: readonly OwedFact[]): Map<string, string> => {
  const found = new Map<string, string>()
  for (const { fact } of facts)
    for (const { trigger, runs } of fact.data.owed)
      for (const { automationId } of runs) found.set(automationId, trigger.organizationId)
  return found
}

/** Ids, names and numbers of a trigger without its point, and of one run. */
const TRIGGER_BYTES = 1_024
const RUN_BYTES = 128

const bytesOf = ({ trigger, runs }: Owed): number =>
  TRIGGER_BYTES + runs.length * RUN_BYTES + (trigger.point === undefined ? 0 : JSON.stringify(trigger.point).length * 2)
