/** The first values of a column: itself, where it has no more. */
export const firstOf = <A extends Int32Array | Float64Array | Uint16Array | Uint8Array>(column: A, count: number): A =>
  column.length === count ? column : (column.subarray(0, count) as A)
