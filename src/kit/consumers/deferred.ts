export interface Deferred<Value> {
  promise: Promise<Value>
  resolve(value: Value): void
  reject(error: unknown): void
}

/** A promise that is settled from outside. */
export const defer = <Value = void>(): Deferred<Value> => {
  let settle: Pick<Deferred<Value>, 'resolve' | 'reject'> | undefined
  const promise = new Promise<Value>((resolve, reject) => {
    settle = { resolve, reject }
  })
  return { promise, ...(settle as unknown as Pick<Deferred<Value>, 'resolve' | 'reject'>) }
}
