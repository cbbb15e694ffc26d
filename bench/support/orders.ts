import type { WrittenCell } from '../../src/kit/formats/table-writer.ts'

export const ORDER_HEADER = ['number', 'name', 'address', 'price', 'paid', 'delivered']

/** A row of an office's orders, the same at each call. */
export const orderOf = (n: number): WrittenCell[] => [
  `C-${n}`,
  `Customer ${n % 1_000}, Ltd`,
  `${n % 300} Long Street, "back yard"`,
  (n % 10_000) / 100,
  n % 3 === 0,
  new Date(1_790_000_000_000 + n * 60_000),
]
