// Positions from the worker to the page: numbers in one transferred array, names only when they are new.
import type { Fix } from './position.ts'

/** Columns of a row of `numbers`, in this order; NaN if unknown. */
export const FIELDS = ['lng', 'lat', 'at', 'seenAt', 'speed', 'heading', 'battery', 'accuracy'] as const
export const ROW = FIELDS.length

export interface Met {
  index: number
  trackerId: string
  name: string
  userId?: string
  vehicleId?: string
}

export interface Columns {
  /** Trackers whose names or owners are new to the page. */
  met: Met[]
  /** The trackers' indexes, in the order of the rows. */
  indexes: Uint32Array<ArrayBuffer>
  numbers: Float64Array<ArrayBuffer>
}

/** Numbers the trackers in order of arrival; one instance per worker. */
export class Packer {
  #indexes = new Map<string, number>()
  #said: string[] = []

  pack(fixes: readonly Fix[]): Columns {
    const columns: Columns = {
      met: [],
      indexes: new Uint32Array(fixes.length),
      numbers: new Float64Array(fixes.length * ROW),
    }
    fixes.forEach((fix, row) => {
      columns.indexes[row] = this.#indexOf(fix, columns.met)
      for (let i = 0; i < ROW; i++) columns.numbers[row * ROW + i] = fix[FIELDS[i]!] ?? Number.NaN
    })
    return columns
  }

  #indexOf({ trackerId, name, userId, vehicleId }: Fix, met: Met[]): number {
    let index = this.#indexes.get(trackerId)
    if (index === undefined) {
      index = this.#indexes.size
      this.#indexes.set(trackerId, index)
    }
    const said = `${userId ?? ''}/${vehicleId ?? ''}/${name}`
    if (this.#said[index] !== said) {
      this.#said[index] = said
      met.push({ index, trackerId, name, userId, vehicleId })
    }
    return index
  }
}
