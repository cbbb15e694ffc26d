import { setTimeout as pause } from 'node:timers/promises'

/** Pause between tries while a commit of several steps is under way. */
const BUSY_MS = 2
/** A writer that died left its mark: the present state is answered. */
const BUSY_TRIES = 500

/** Mode in which the library looks at a place: while no commit is under way, again, or regardless. */
export type How = '0' | '1' | '2'

const howOf = (tries: number): How => (tries === 0 ? '0' : tries < BUSY_TRIES ? '2' : '1')

/** The library's answer once no commit is under way, after the status; `sweep` deletes expired rows, where any wait. */
export const answeredWhenFree = async (
  ask: (how: How) => Promise<unknown>,
  sweep?: () => Promise<unknown>,
): Promise<unknown[]> => {
  for (let tries = 0; ; tries++) {
    const [status, ...answer] = (await ask(howOf(tries))) as [Buffer, ...unknown[]]
    const said = String(status)
    if (said === 'ok') return answer
    if (said === 'ended') await sweep?.()
    else await pause(BUSY_MS)
  }
}
