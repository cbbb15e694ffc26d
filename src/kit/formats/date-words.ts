import { plainText } from '../../kernel/words.ts'

/** Languages of files. Without Croatian, whose names of some months are those of others in Polish and Czech. */
export const LANGUAGES = 'en de fr es it pt nl pl cs sk hu ro sv da nb fi sl tr lt lv et el uk bg ru ar he'.split(' ')
const YEAR = 2026
const MONTHS = Array.from({ length: 12 }, (_, month) => Date.UTC(YEAR, month, 1))
const WEEKDAYS = Array.from({ length: 7 }, (_, day) => Date.UTC(YEAR, 0, 1 + day))

/** What the languages call a part of these dates, in full and short, beside a day and alone: many decline it. */
const namesOf = (part: 'month' | 'weekday', dates: readonly number[]): Map<string, number> => {
  const names = new Map<string, number>()
  for (const language of LANGUAGES)
    for (const style of ['long', 'short'] as const)
      for (const beside of [{}, { day: 'numeric' }] as const) {
        const format = new Intl.DateTimeFormat(language, { ...beside, [part]: style, timeZone: 'UTC' })
        for (const [i, at] of dates.entries()) {
          const name = format.formatToParts(at).find(({ type }) => type === part)?.value ?? ''
          names.set(plainText(name).replace(/\.$/, ''), i + 1)
        }
      }
  return names
}

let months: ReadonlyMap<string, number> | undefined
let weekdays: ReadonlyMap<string, number> | undefined

/** Numbers of those with that name, or with names that it begins, as `Sept` and `Thurs` do. */
const meant = (names: ReadonlyMap<string, number>, name: string): Set<number> => {
  const plain = plainText(name)
  const known = names.get(plain)
  if (known !== undefined) return new Set([known])
  return new Set([...names].flatMap(([whole, number]) => (whole.startsWith(plain) ? number : [])))
}

/** Number of the month with that name, in full, short or cut, in any of the languages; 0 for none. */
export const monthOf = (name: string): number => {
  months ??= namesOf('month', MONTHS)
  const [month, another] = meant(months, name)
  return month === undefined || another !== undefined ? 0 : month
}

export const isWeekday = (name: string): boolean => {
  weekdays ??= namesOf('weekday', WEEKDAYS)
  return meant(weekdays, name).size > 0
}
