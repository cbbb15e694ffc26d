import { integer, list, object, oneOf, optional, timeOfDay, withDefault } from '../../kernel/schema.ts'

/** The simple form of a recurrence. */
export const repeat = object({
  period: oneOf('daily', 'weekly', 'monthly', 'yearly'),
  every: withDefault(integer({ min: 1, max: 1_000 }), 1),
  weekdays: optional(list(oneOf('mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'), { max: 7, unique: true })),
  monthDay: optional(integer({ min: 1, max: 31 })),
  at: timeOfDay(),
})
