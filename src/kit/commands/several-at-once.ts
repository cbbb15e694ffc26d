import { breathe } from '../../kernel/breath.ts'

/**
 * Runs a task for each item, at most `atOnce` at a time, with breaths before they begin. Rejects with the first
 * failure, once all running tasks have ended; the others are not started.
 */
export const severalAtOnce = async <Item>(
  items: Iterable<Item>,
  atOnce: number,
  run: (item: Item) => Promise<unknown>,
): Promise<void> => {
  const failures: unknown[] = []
  let running = 0
  let wake = (): void => undefined
  const ended = (): void => {
    running--
    wake()
  }
  const oneEnds = (): Promise<void> => new Promise((resume) => (wake = resume))
  for (const item of items) {
    const pause = breathe()
    if (pause !== undefined) await pause
    while (running >= atOnce) await oneEnds()
    if (failures.length > 0) break
    running++
    run(item).then(ended, (error: unknown) => {
      failures.push(error)
      ended()
    })
  }
  while (running > 0) await oneEnds()
  if (failures.length > 0) throw failures[0]
}
