/** Between two tries of whoever finds a commit of several steps under way. */
export const BUSY_MS = 2
/** A writer that died left its mark: what is there is answered. */
const BUSY_TRIES = 500

/** How the library is told to look at a place: while no commit is under way, again, or whatever is under way. */
export const howOf = (tries: number): '0' | '1' | '2' => (tries === 0 ? '0' : tries < BUSY_TRIES ? '2' : '1')
