/** Nothing was received until the deadline of a call that the client makes without one. */
export class Unanswered extends Error {}
