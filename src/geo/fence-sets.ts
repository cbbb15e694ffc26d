/**
 * Sets of fences as small integers: equal sets have equal ids, 0 is the empty set. So the fences around a tracker are
 * one integer, and "nothing changed" one comparison.
 */
export class FenceSets {
  readonly #members: (readonly number[])[] = [[]]
  readonly #firstOfHash = new Map<number, number>([[0, 0]])
  /** The next set with the same hash, by set id; 0 ends. */
  readonly #nextOfHash: number[] = [0]
  /** Earlier answers of `#add`: open addressing, three integers for each entry: set + 1, fence, answer. */
  #memo = new Int32Array(3 * 64)
  #memoized = 0

  get total(): number {
    return this.#members.length
  }

  members(set: number): readonly number[] {
    const members = this.#members[set]
    if (members === undefined) throw new RangeError(`no set of fences has the id ${set}`)
    return members
  }

  /** The id of a set; `fences` rising and without repeats. Keeps the array. */
  of(fences: readonly number[]): number {
    if (fences.length === 0) return 0
    const hash = hashOf(fences)
    const first = this.#firstOfHash.get(hash) ?? 0
    for (let set = first; set !== 0; set = this.#nextOfHash[set]!) if (equal(this.#members[set]!, fences)) return set
    const set = this.#members.push(fences) - 1
    this.#nextOfHash.push(first)
    this.#firstOfHash.set(hash, set)
    return set
  }

  /** The id of a set together with the first `count` of `fences`, in any order. */
  addAll(set: number, fences: readonly number[], count: number): number {
    if (count > ADDED_ONE_BY_ONE) {
      return this.of([...new Set([...this.#members[set]!, ...fences.slice(0, count)])].sort((a, b) => a - b))
    }
    for (let i = 0; i < count; i++) set = this.#add(set, fences[i]!)
    return set
  }

  #add(set: number, fence: number): number {
    const memo = this.#memo
    let at = slotOf(memo, set, fence)
    for (; memo[at] !== 0; at = at + 3 === memo.length ? 0 : at + 3) {
      if (memo[at] === set + 1 && memo[at + 1] === fence) return memo[at + 2]!
    }
    const answer = this.of(withMember(this.#members[set]!, fence))
    this.#memoize(at, set, fence, answer)
    return answer
  }

  #memoize(at: number, set: number, fence: number, answer: number): void {
    this.#memo[at] = set + 1
    this.#memo[at + 1] = fence
    this.#memo[at + 2] = answer
    if (++this.#memoized * 6 > this.#memo.length) this.#growMemo()
  }

  #growMemo(): void {
    const old = this.#memo
    const memo = new Int32Array(old.length * 2)
    for (let i = 0; i < old.length; i += 3) {
      if (old[i] === 0) continue
      let at = slotOf(memo, old[i]! - 1, old[i + 1]!)
      while (memo[at] !== 0) at = at + 3 === memo.length ? 0 : at + 3
      memo.set(old.subarray(i, i + 3), at)
    }
    this.#memo = memo
  }
}

/** One by one is quick where it was done before; more would fill the table with intermediate sets. */
const ADDED_ONE_BY_ONE = 6

const slotOf = (memo: Int32Array, set: number, fence: number): number => {
  const mixed = Math.imul(Math.imul(set, 0x9e3779b1) ^ fence, 0x85ebca6b)
  return ((mixed ^ (mixed >>> 15)) & (memo.length / 3 - 1)) * 3
}

const hashOf = (fences: readonly number[]): number => {
  let hash = 0
  for (const fence of fences) hash = Math.imul(hash ^ fence, 0x9e3779b1) ^ (hash >>> 13)
  return hash
}

const equal = (a: readonly number[], b: readonly number[]): boolean =>
  a.length === b.length && a.every((fence, i) => fence === b[i])

const withMember = (members: readonly number[], fence: number): readonly number[] => {
  const at = members.findIndex((member) => member >= fence)
  if (at < 0) return [...members, fence]
  return members[at] === fence ? members : [...members.slice(0, at), fence, ...members.slice(at)]
}
