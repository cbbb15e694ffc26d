import type { EventLog } from '../../engines/event-log.ts'
import type { HistoryStore } from '../../engines/history-store.ts'
import type { RunBacktest } from '../../features/backtests/backtest.ts'
import { GROUP_NOUN, groupStream, type GroupRules } from '../../features/geofences/events.ts'
import { backtestPoints, estimatePoints } from '../../features/locations/history/streams.ts'
import type { Transition } from '../../features/transitions/events.ts'
import { transitionShown } from '../../features/transitions/views.ts'
import { loadState } from '../../kit/commands/load-state.ts'
import { ABSENT, evolveResource } from '../../kit/resource/decider.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { backtest } from './backtest-geofence.ts'
import { accuracyMaxCmOf } from '../matcher/fences.ts'
import { shapeAt } from './shape-at.ts'

export interface AnswerServices {
  log: EventLog
  history: HistoryStore
  visibleTrackers(caller: Pick<UserCaller, 'organizationId' | 'hubIds'>): Promise<'all' | readonly string[]>
  pointsMax: number
}

const TRANSITIONS_MAX = 100_000

/** Answers a back-test at once, or tells how much there is to read where that is too much for one answer. */
export const backtestOf =
  ({ log, history, visibleTrackers, pointsMax }: AnswerServices): RunBacktest =>
  async (question) => {
    const { caller, geofenceId, geofenceVersion, trackerIds, from, to, signal } = question
    const { organizationId } = caller
    const scope = { organizationId, trackerIds: await visibleTrackers(caller) }
    const rules = { ...(await rulesOf(log, question.geofenceGroupId)), ...defined(question.rules) }
    const total = await estimatePoints(history, scope, { trackerIds, from, to })
    if (total > pointsMax) return { total, rules }
    const shape = await shapeAt(log, geofenceId, geofenceVersion)
    const found: Transition[] = []
    const points = backtestPoints(
      history,
      scope,
      { trackerIds, from, to, accuracyMaxCm: accuracyMaxCmOf(rules.maxAccuracy) },
      signal,
    )
    for await (const { transitions } of backtest({ ...question, organizationId, shape, rules }, points)) {
      for (const transition of transitions) found.push(transition)
      if (found.length > TRANSITIONS_MAX) return { total, rules }
    }
    return { transitions: found.sort((a, b) => a.at - b.at).map(transitionShown) }
  }

const rulesOf = async (log: EventLog, geofenceGroupId: string): Promise<GroupRules> => {
  const { state } = await loadState(log, groupStream(geofenceGroupId), {
    initial: ABSENT,
    decide: () => [],
    evolve: evolveResource(GROUP_NOUN),
  })
  const { maxAccuracy, debounce } = (state.values ?? {}) as GroupRules
  return defined({ maxAccuracy, debounce })
}

const defined = (rules: GroupRules): GroupRules =>
  Object.fromEntries(Object.entries(rules).filter(([, value]) => value !== undefined))
