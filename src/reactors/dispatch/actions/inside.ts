import { chainAfter } from '../../../features/automations/chain.ts'
import { Failure, invalid } from '../../../kernel/errors.ts'
import type { Clock } from '../../../kernel/clock.ts'
import { isObject, type Json, type JsonObject } from '../../../kernel/json.ts'
import { idSource } from '../../../kit/commands/ids.ts'
import type { ResourceServices } from '../../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../../kit/resource/writes.ts'
import type { Outcome, Work } from './action.ts'

export type InsideServices = ResourceServices & { clock: Clock }

export const DETAILS_PATH = '/automationDetails'

/** The editor may not do this now. */
export class NotForEditor extends Error {}

/** Writes of a run are the automation's own: they name their run, and limit further runs. */
export const originOf = ({ clock }: Pick<InsideServices, 'clock'>, { automation, run }: Work): WriteOrigin => {
  const { organizationId } = automation
  const now = clock.now()
  const metadata = {
    organizationId,
    actor: `automation:${automation._id}`,
    $causationId: run.runId,
    chain: chainAfter(run.trigger.chain),
  }
  return { organizationId, now, ids: idSource(now), metadata }
}

/**
 * Performs the act of a run, unless an earlier attempt has. A refusal by the service ends the run: it would be refused
 * again. Any other failure is the service's own and is thrown.
 */
export const outcomeOf = async (act: () => Promise<JsonObject>): Promise<Outcome> => {
  try {
    return { kind: 'done', wrote: await act() }
  } catch (error) {
    if (error instanceof NotForEditor) return { kind: 'hidden' }
    if (!(error instanceof Failure) || error.status >= 500) throw error
    const isPassing = error.details.retryAfterSeconds !== undefined
    return { kind: 'failed', error: sentenceOf(error), ...(!isPassing && { ends: 'run' }) }
  }
}

const ERROR_CHARS_MAX = 300

const sentenceOf = ({ code, message }: Failure): string => `${code}: ${message}`.slice(0, ERROR_CHARS_MAX)

const PAGE_EVENTS = 20

/** Whether the run has written this stream already; only events logged since it was owed are read. */
export const hasWritten = (
  services: Pick<InsideServices, 'log'>,
  stream: string,
  { run, isFirst }: Work,
): boolean | Promise<boolean> => (isFirst ? false : findsWritten(services, stream, run))

const findsWritten = async (
  { log }: Pick<InsideServices, 'log'>,
  stream: string,
  run: Work['run'],
): Promise<boolean> => {
  for (let from: number | 'end' = 'end'; ; ) {
    const events = await log.read(stream, from, PAGE_EVENTS, 'backwards')
    if (events.some(({ metadata }) => metadata.$causationId === run.runId)) return true
    const first = events[events.length - 1]
    if (first === undefined || first.revision === 0 || first.loggedAt < run.owedAt - CLOCKS_APART_MS) return false
    from = first.revision - 1
  }
}

/** Largest difference between clocks of nodes and of the log. */
const CLOCKS_APART_MS = 60_000

/** The members of details; others are refused. @throws Failure invalid */
export const membersOf = (
  details: JsonObject | undefined,
  known: readonly string[],
  required: readonly string[],
): JsonObject => {
  if (details === undefined) throw invalid(DETAILS_PATH, `is required: {${known.join(', ')}}`)
  const unknown = Object.keys(details).find((name) => !known.includes(name))
  if (unknown !== undefined) throw invalid(`${DETAILS_PATH}/${unknown}`, 'is not a known field')
  const missing = required.find((name) => details[name] === undefined)
  if (missing !== undefined) throw invalid(`${DETAILS_PATH}/${missing}`, 'is required')
  return details
}

/** @throws Failure invalid */
export const idOf = (value: Json | undefined, path: string): string => {
  if (typeof value !== 'string' || !isId(value)) throw invalid(path, 'must be an id')
  return value.toLowerCase()
}

export const isId = (text: string): boolean => ID.test(text)

const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i

/** @throws Failure invalid */
export const objectOf = (value: Json | undefined, path: string): JsonObject => {
  if (!isObject(value)) throw invalid(path, 'must be an object')
  return value
}
