/** Distances or driving times between places, by rows of origins and by rows of destinations. */
export interface Matrix {
  /** At `from * stride + to`. */
  from: Float32Array
  /** At `to * stride + from`; the same array where both ways are alike. */
  to: Float32Array
  /** Number of places, and one more at no distance from anywhere: the end of open routes. */
  stride: number
}

export const matrixOf = (values: Float32Array, places: number): Matrix => {
  const stride = places + 1
  const from = new Float32Array(stride * stride)
  for (let row = 0; row < places; row++) from.set(values.subarray(row * places, (row + 1) * places), row * stride)
  return { from, to: transposed(from, stride), stride }
}

const transposed = (matrix: Float32Array, size: number): Float32Array => {
  const other = new Float32Array(matrix.length)
  let isSame = true
  for (let row = 0; row < size; row++)
    for (let column = 0; column < size; column++) {
      const value = matrix[column * size + row]
      other[row * size + column] = value
      isSame &&= value === matrix[row * size + column]
    }
  return isSame ? matrix : other
}
