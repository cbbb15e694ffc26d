/** The `_id` of a point as the contract has it. */
export const pointIdOf = (trackerId: string | undefined, recordedAt: number): string =>
  `${trackerId}.${recordedAt.toString(36)}`
