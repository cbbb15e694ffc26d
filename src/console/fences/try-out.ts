// Tries a shape against last week's points before it is used: creates an inactive geofence, back-tests it, deletes it.
import { post, serverNow } from '../api/client.ts'
import { create, newId } from '../api/create.ts'
import type { FenceShape } from '../map/fence-features.ts'
import { type Rules, triedRules } from './rules.ts'
import { beginTrial, endTrial } from './trials.ts'
import { crossingOf, NOTHING, type Tried, triedOf } from './tried.ts'

const WEEK_MS = 7 * 86_400_000

export const tryOut = async (
  name: string,
  geofenceGroupId: string,
  shape: FenceShape,
  rules: Rules,
): Promise<Tried> => {
  const now = serverNow()
  const span = { from: now - WEEK_MS, to: now }
  const range = { from: new Date(span.from).toISOString(), to: new Date(span.to).toISOString() }
  // Chosen here: it can be deleted although the answer to its creation was lost.
  const id = newId()
  const path = `/geofence/${id}`
  beginTrial(id)
  try {
    await create('/geofence', { _id: id, name, geofenceGroupId, ...shape, isActive: false })
    const settled = await post(`${path}/backtest`, { ...range, ...triedRules(rules) })
    if (!Array.isArray(settled.data)) return { ...NOTHING, ...span, isTooMuch: true }
    const raw = await post(`${path}/backtest`, {
      ...range,
      ...triedRules(rules),
      debounce: { fixes: 1 },
    })
    return triedOf(
      settled.data.map(crossingOf),
      (Array.isArray(raw.data) ? raw.data : settled.data).map(crossingOf),
      span,
    )
  } finally {
    void endTrial(id)
  }
}
