import { nextMark } from './build-batch.ts'
import type { PointColumns } from '../point-columns.ts'

/** How many rows repeat the tracker and time of another row. */
export const countRepeats = ({ count, tracker, recordedAt }: PointColumns): number => {
  const mark = nextMark()
  let trackers = 0
  const latest: number[] = []
  for (let row = 0; row < count; row++) {
    const one = tracker[row]
    if (one.mark !== mark) {
      one.mark = mark
      one.index = trackers++
      latest.push(recordedAt[row])
    } else if (recordedAt[row] > latest[one.index]) latest[one.index] = recordedAt[row]
    else return countUnordered(count, tracker, recordedAt)
  }
  return 0
}

/** Only frames in which some tracker's times do not rise pay for a set. */
const countUnordered = (count: number, tracker: PointColumns['tracker'], recordedAt: Float64Array): number => {
  const seen = new Map<PointColumns['tracker'][number], Set<number>>()
  let repeats = 0
  for (let row = 0; row < count; row++) {
    const times = seen.get(tracker[row])
    if (times === undefined) seen.set(tracker[row], new Set([recordedAt[row]]))
    else if (times.has(recordedAt[row])) repeats++
    else times.add(recordedAt[row])
  }
  return repeats
}
