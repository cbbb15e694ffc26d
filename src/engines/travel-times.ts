/** A place in WGS 84 degrees. */
export interface TravelPlace {
  lat: number
  lng: number
}

/** Square matrices in the order of the places, by rows of origins. An unreachable place is `UNREACHABLE`. */
export interface TravelTable {
  /** Metres. */
  distances: Float32Array
  /** Seconds. */
  durations: Float32Array
}

export const UNREACHABLE = 1e9

/**
 * Distances and driving times by road. Promises of every engine:
 * - Rejects with a Failure `engine_down` when the server does not answer properly within its deadlines, never hangs.
 * - Calls nothing but the address that it was opened with; redirects are not followed.
 */
export interface TravelTimes {
  table(places: readonly TravelPlace[], signal: AbortSignal): Promise<TravelTable>
  close(): Promise<void>
}
