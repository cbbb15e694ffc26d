/**
 * Intervals of longitude, sorted into slabs of equal width: which intervals can a longitude be in?
 * `of[first[i] .. first[i + 1]]` are the intervals that reach into slab i.
 */
export type Slabs = {
  readonly west: number
  readonly width: number
  readonly first: Int32Array
  readonly of: Int32Array
}

const ENTRIES_PER_INTERVAL = 4

/** Intervals are closed; as many slabs as keep the entries below four per interval, so long intervals cost no memory. */
export const makeSlabs = (ids: Int32Array, west: Float64Array, east: Float64Array): Slabs => {
  let min = Infinity
  let max = -Infinity
  let total = 0
  for (let i = 0; i < ids.length; i++) {
    min = Math.min(min, west[i]!)
    max = Math.max(max, east[i]!)
    total += east[i]! - west[i]!
  }
  const range = max - min + 1
  const count = Math.max(
    1,
    Math.min(ids.length, Math.floor(((ENTRIES_PER_INTERVAL - 1) * ids.length * range) / (total + 1))),
  )
  const slabs = { west: min, width: range / count, first: new Int32Array(count + 1), of: new Int32Array(0) }
  for (let i = 0; i < ids.length; i++) {
    for (let s = slabAt(slabs, west[i]!), last = slabAt(slabs, east[i]!); s <= last; s++) slabs.first[s]!++
  }
  for (let s = 1; s <= count; s++) slabs.first[s]! += slabs.first[s - 1]!
  slabs.of = new Int32Array(slabs.first[count]!)
  for (let i = ids.length - 1; i >= 0; i--) {
    for (let s = slabAt(slabs, west[i]!), last = slabAt(slabs, east[i]!); s <= last; s++)
      slabs.of[--slabs.first[s]!] = ids[i]!
  }
  return slabs
}

/** The slab of a longitude, the nearest one for a longitude beyond the ends. */
export const slabAt = (slabs: Slabs, lng: number): number => {
  const slab = Math.floor((lng - slabs.west) / slabs.width)
  return Math.max(0, Math.min(slab, slabs.first.length - 2))
}
