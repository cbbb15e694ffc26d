import type { HistoryReader } from '../../engines/history-store.ts'
import { Failure } from '../../kernel/errors.ts'

/** Queries that one organization may hold open, out of 64 of an engine: slow clients leave some to others. */
export const OWN_OPEN_MAX = 48

/**
 * The history for answers that are streamed to clients, each query about one `organization`: an organization whose
 * clients do not read blocks neither others nor the service itself.
 */
export const ownShares = (history: HistoryReader): HistoryReader => {
  const open = new Map<string, number>()
  return {
    rows: (sql, parameters) => history.rows(sql, parameters),
    query: async function* (sql, parameters, format, signal) {
      const own = String(parameters?.organization)
      const before = open.get(own) ?? 0
      if (before >= OWN_OPEN_MAX)
        throw new Failure('overloaded', {
          message: 'Too many answers from the history are open in your organization.',
          retryAfterSeconds: 1,
        })
      open.set(own, before + 1)
      try {
        yield* history.query(sql, parameters, format, signal)
      } finally {
        const left = (open.get(own) ?? 1) - 1
        if (left > 0) open.set(own, left)
        else open.delete(own)
      }
    },
  }
}
