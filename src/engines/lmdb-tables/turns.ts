const waiting: (() => void)[] = []

/** Gives the event loop a turn; the snapshot stays as it is. Each turn continues one of the waiting questions. */
export const nextTurn = (): Promise<void> =>
  new Promise((resolve) => {
    if (waiting.push(resolve) === 1) setImmediate(goOn)
  })

const goOn = (): void => {
  waiting.shift()?.()
  if (waiting.length > 0) setImmediate(goOn)
}
