/** Longest time that unbounded work keeps the event loop, all of it together. */
const TURN_MS = 5
/**
 * Multiple of the sockets' time beyond `TURN_MS` where they never rest: with less, consumers fall seconds behind the
 * input. They never rest if one of the two turns before waited for them too: one alone may have waited for a collection
 * of garbage.
 */
const TIMES_SOCKETS = 3
const TURN_MS_MAX = 250
/** Time left for work resumed at the end of a turn: shorter ones are lost in waiting. */
const SLICE_MS = 1

let turnEnds = 0
let sliceEnds = 0
let isTurnAsked = false
let askedAt = 0
/** The sockets' time in the last turn, and in the one before. */
let before = 0
let earlier = 0
let waiting: (() => void)[] = []
let next = 0

/**
 * Gives sockets and timers their turn: to be awaited before each piece of work of a loop that awaits nothing else for
 * long. All such loops of the process share one budget, since many small ones would add up: waiting loops are resumed
 * one after the other, each once the one before has finished its synchronous work.
 */
export const breathe = (): Promise<void> | undefined => (hasBreath() ? undefined : new Promise(wait))

/**
 * As `breathe`, also where there is breath left: for work of which many pieces are resumed by one event, such as the
 * answer to an append. Each of them would see breath before the first has used any.
 */
export const nextSlice = (): Promise<void> => new Promise(wait)

/** Whether others may wait longer: for a loop that goes on by itself where `breathe` would have to be awaited. */
export const hasBreath = (): boolean => performance.now() < sliceEnds

/** Runs a piece of work from each place that the piece before answered, up to `end`, with breaths between them. */
export const inSlices = (end: number, slice: (from: number) => number, from = 0): void | Promise<void> => {
  for (let at = slice(from); at < end; at = slice(at)) {
    const pause = breathe()
    if (pause !== undefined) return pause.then(() => inSlices(end, slice, at))
  }
}

const wait = (resume: () => void): void => {
  waiting.push(resume)
  if (!isTurnAsked) askForTurn()
}

const askForTurn = (): void => {
  isTurnAsked = true
  askedAt = performance.now()
  setImmediate(beginTurn)
}

const beginTurn = (): void => {
  const now = performance.now()
  const socketsMs = now - askedAt - TURN_MS
  const restlessMs = Math.min(socketsMs, Math.max(before, earlier))
  earlier = before
  before = socketsMs
  turnEnds = now + Math.min(TURN_MS_MAX, Math.max(TURN_MS, TIMES_SOCKETS * restlessMs))
  resumeNext()
}

const resumeNext = (): void => {
  const now = performance.now()
  if (next === waiting.length) {
    waiting = []
    next = 0
    isTurnAsked = false
  } else if (now < turnEnds) {
    sliceEnds = Math.max(turnEnds, now + SLICE_MS)
    waiting[next++]()
    // A tick that a microtask asks for comes when no microtask is left: resumed work waits for something then.
    queueMicrotask(() => process.nextTick(resumeNext))
  } else {
    waiting = waiting.slice(next)
    next = 0
    askForTurn()
  }
}
