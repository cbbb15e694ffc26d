import { hash } from 'node:crypto'

/**
 * Shares out all names between the processes that take part: evenly, with few moves when one comes or goes (rendezvous
 * hashing, Thaler and Ravishankar 1998, with a bound on each share), and all names of one partition to one process
 * where the same ones take part in them.
 */
export const sharesOf = (joins: ReadonlyMap<string, readonly string[]>): Map<string, string> => {
  const candidates = new Map<string, string[]>()
  for (const [owner, names] of [...joins].sort(([a], [b]) => (a < b ? -1 : 1)))
    for (const name of names) candidates.set(name, [...(candidates.get(name) ?? []), owner])
  /** Names by their candidates and by partition; a name without a partition is shared out by itself. */
  const groups = new Map<string, { owners: string[]; units: Map<string, string[]> }>()
  for (const [name, owners] of candidates) {
    const key = `${owners.join()} ${unitOf(name) === name}`
    const group = groups.get(key) ?? { owners, units: new Map<string, string[]>() }
    groups.set(key, group)
    group.units.set(unitOf(name), [...(group.units.get(unitOf(name)) ?? []), name])
  }
  const shares = new Map<string, string>()
  for (const { owners, units } of groups.values()) {
    const most = Math.ceil(units.size / owners.length)
    const counts = new Map(owners.map((owner) => [owner, 0]))
    for (const unit of [...units.keys()].sort()) {
      const free = owners.filter((owner) => (counts.get(owner) ?? 0) < most)
      const owner = free.reduce((best, one) => (weight(one, unit) > weight(best, unit) ? one : best))
      counts.set(owner, (counts.get(owner) ?? 0) + 1)
      for (const name of units.get(unit) ?? []) shares.set(name, owner)
    }
  }
  return shares
}

/** The partition that a name ends with, or the name. */
const unitOf = (name: string): string => /-(\d+)$/.exec(name)?.[1] ?? name

const weight = (owner: string, unit: string): string => hash('sha1', `${owner} ${unit}`)
