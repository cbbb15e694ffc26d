import type { Span } from './problem.ts'

// A vehicle stands still in its breaks, which are sorted and do not overlap. All of these rise with the given time, so
// that the earliest and the latest time of each visit decide in O(1) whether another one fits in before it.

/** Earliest end of a drive of `durationS` that may begin at `atS`. */
export const drivenBy = (breaks: readonly Span[], atS: number, durationS: number): number => {
  if (durationS === 0) return atS
  for (const { from, to } of breaks) {
    if (atS >= to) continue
    if (atS >= from) atS = to
    else if (atS + durationS <= from) return atS + durationS
    else {
      durationS -= from - atS
      atS = to
    }
  }
  return atS + durationS
}

/** Latest departure of a drive of `durationS` that has to end by `byS`. */
export const drivenFrom = (breaks: readonly Span[], byS: number, durationS: number): number => {
  if (durationS === 0) return byS
  for (let i = breaks.length - 1; i >= 0; i--) {
    const { from, to } = breaks[i]
    if (byS <= from) continue
    if (byS > to) {
      if (byS - durationS >= to) return byS - durationS
      durationS -= byS - to
    }
    byS = from
  }
  return byS - durationS
}

/** First time from `atS` on when `durationS` of work can begin and end without a break. */
export const workFrom = (breaks: readonly Span[], atS: number, durationS: number): number => {
  for (const { from, to } of breaks) {
    if (atS + durationS <= from) return atS
    if (atS < to) atS = to
  }
  return atS
}

/** Last time up to `atS` when `durationS` of work can begin and end without a break. */
export const workBefore = (breaks: readonly Span[], atS: number, durationS: number): number => {
  for (let i = breaks.length - 1; i >= 0; i--) {
    const { from, to } = breaks[i]
    if (atS >= to) return atS
    if (atS + durationS > from) atS = from - durationS
  }
  return atS
}

/** Sorted, without overlaps. */
export const keptBreaks = (breaks: readonly Span[]): Span[] => {
  const kept: Span[] = []
  for (const { from, to } of [...breaks].sort((one, other) => one.from - other.from)) {
    const last = kept.at(-1)
    if (last !== undefined && from <= last.to) last.to = Math.max(last.to, to)
    else if (to > from) kept.push({ from, to })
  }
  return kept
}
