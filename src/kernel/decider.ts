import type { Fact } from './event.ts'

/**
 * The whole model of one kind of thing. `decide` answers the facts that a command makes, from the state before; it
 * reads no clock and makes no id: both come with the command. It throws a `Failure` where the command is refused and
 * answers no facts where nothing changes. `evolve` folds a fact into the state.
 */
export interface Decider<State, Command, F extends Fact = Fact> {
  initial: State
  decide(command: Command, state: State): F[]
  evolve(state: State, fact: F): State
}
