/** How long work that could go on and on may keep the event loop for itself. */
const TURN_MS = 5

let turnBegan = 0
let nextTurn: Promise<void> | undefined

/**
 * Lets sockets and timers have their turn: to be awaited before each piece of work of a loop that awaits nothing else
 * for long. All such loops of the process share one budget, or many small ones would add up.
 */
export const breathe = (): Promise<void> | undefined => (performance.now() - turnBegan < TURN_MS ? undefined : untilNextTurn())

const untilNextTurn = async (): Promise<void> => {
  do {
    nextTurn ??= new Promise((resume) =>
      setImmediate(() => {
        nextTurn = undefined
        turnBegan = performance.now()
        resume()
      }),
    )
    await nextTurn
    // Whoever else waited has resumed in this turn as well: the first ones may have used it up.
  } while (performance.now() - turnBegan >= TURN_MS)
}
