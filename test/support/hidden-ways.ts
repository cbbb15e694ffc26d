/**
 * Where values of records come out of the service, for the walk of `test/stream/restricted-walk.test.ts`. Each operation,
 * live channel and type of automation has its place here, or the walk fails and says so.
 */

/** Operations whose answers hold values of records: what an owner reads there, a role can hide. */
export const WAYS_OUT: readonly string[] = [
  'listData',
  'readData',
  'readDataByType',
  'createData',
  'replaceData',
  'amendData',
  'listAuditLog',
  'readFile',
]

/** Those that refuse what is hidden, in place of leaving it out. */
export const REFUSED: readonly string[] = ['readFile']

/** Channels of the live view: whether their events can hold what automations made of a record, or why they cannot. */
export const CHANNELS: { [channel: string]: 'walked' | `only ${string}` } = {
  positions: 'only where trackers are',
  geofence: 'only transitions of trackers',
  trip: 'only trips of trackers',
  job: 'only counts and states of jobs, and reasons without what they quote',
  automation: 'only ids and outcomes of runs',
  task: 'walked',
  notification: 'walked',
}

/** Types of automations: where they write what an event says of a record, or that they are of tasks alone. */
export const AUTOMATION_TYPES: { [type: string]: 'tells' | 'of tasks alone' } = {
  webhook: 'tells',
  createTask: 'tells',
  createAndAssignTask: 'tells',
  createOrUpdateDataSource: 'tells',
  notification: 'tells',
  assignTask: 'of tasks alone',
  moveTask: 'of tasks alone',
  updateTask: 'of tasks alone',
}
