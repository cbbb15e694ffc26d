// Rules shared by the geofences of a group: when a crossing counts.
import type { Json } from '../api/client.ts'

/** Form values: null for rules that are not set. */
export interface Rules {
  fixes: number | null
  seconds: number | null
  maxAccuracy: number | null
}

export const rulesOf = ({ debounce, maxAccuracy }: Json): Rules => ({
  fixes: debounce?.fixes ?? null,
  seconds: debounce?.seconds ?? null,
  maxAccuracy: maxAccuracy ?? null,
})

export const isSame = (a: Rules, b: Rules): boolean =>
  a.fixes === b.fixes && a.seconds === b.seconds && a.maxAccuracy === b.maxAccuracy

/** Body of a group change: null removes a rule. */
export const groupRules = ({ fixes, seconds, maxAccuracy }: Rules): Json => ({
  debounce: fixes === null && seconds === null ? null : { fixes, seconds },
  maxAccuracy,
})

/** Accepts any accuracy. */
const ACCURACY_METERS_MAX = 1_000_000

/** Rules for a back-test, which has no "none". */
export const triedRules = ({ fixes, seconds, maxAccuracy }: Rules): Json => ({
  debounce: { fixes: fixes ?? 1, ...(seconds !== null && { seconds }) },
  maxAccuracy: maxAccuracy ?? ACCURACY_METERS_MAX,
})
