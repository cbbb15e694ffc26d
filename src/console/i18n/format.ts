// Times, lengths and speeds for display, in the chosen language and the organization's time zone.
import { session } from '../app/session.svelte.ts'
import { i18n, t } from './i18n.svelte.ts'

const made = new Map<string, Intl.DateTimeFormat>()
const dates = (options: Intl.DateTimeFormatOptions, timeZone = session.timeZone): Intl.DateTimeFormat => {
  const key = JSON.stringify([i18n.locale, timeZone, options])
  let format = made.get(key)
  if (format === undefined) {
    // Latin digits: they appear beside plates and coordinates.
    format = new Intl.DateTimeFormat(`${i18n.locale}-u-nu-latn`, { timeZone, ...options })
    made.set(key, format)
  }
  return format
}

const CLOCK: Intl.DateTimeFormatOptions = { hour: '2-digit', minute: '2-digit', second: '2-digit', hourCycle: 'h23' }

export const clockOf = (at: number): string => dates(CLOCK).format(at)

export const shortClockOf = (at: number): string =>
  dates({ hour: '2-digit', minute: '2-digit', hourCycle: 'h23' }).format(at)

export const dateOf = (at: number): string =>
  dates({ weekday: 'short', day: 'numeric', month: 'short', year: 'numeric' }).format(at)

const DATE_TIME: Intl.DateTimeFormatOptions = { day: 'numeric', month: 'short', year: 'numeric', ...CLOCK }

export const dateTimeOf = (at: number): string => dates(DATE_TIME).format(at)

/** With the name of its time zone, and in the reader's own time if that differs. */
export const momentOf = (at: number): string => {
  const { timeZone, ownTimeZone } = session
  const told = `${dateTimeOf(at)} ${timeZone}`
  const own = dates(DATE_TIME, ownTimeZone).format(at)
  return own === dateTimeOf(at) ? told : `${told} · ${own} ${ownTimeZone}`
}

/** Whether the reader's clock shows another time than the organization's. */
export const isElsewhere = (at: number): boolean => dates(CLOCK, session.ownTimeZone).format(at) !== clockOf(at)

export const durationOf = (ms: number): string => {
  const seconds = Math.max(0, Math.round(ms / 1000))
  if (seconds < 60) return t('seconds', { n: seconds })
  const minutes = Math.round(seconds / 60)
  if (minutes < 60) return t('minutes', { n: minutes })
  const hours = Math.floor(minutes / 60)
  if (hours < 48) return t('hours', { h: hours, m: minutes % 60 })
  return t('days', { n: Math.round(hours / 24) })
}

export const agoOf = (ms: number): string => t('ago', { age: durationOf(ms) })

export const speedOf = (metersPerSecond: number): string => t('kmh', { n: Math.round(metersPerSecond * 3.6) })

const TENTHS: Intl.NumberFormatOptions = { minimumFractionDigits: 1, maximumFractionDigits: 1, useGrouping: false }

/** With the decimal sign of the language, in Latin digits. */
const kilometers = (n: number): string => new Intl.NumberFormat(`${i18n.locale}-u-nu-latn`, TENTHS).format(n)

export const lengthOf = (meters: number): string =>
  meters < 1000 ? t('meters', { n: Math.round(meters) }) : t('kilometers', { n: kilometers(meters / 1000) })

export const placeOf = (lat: number, lng: number): string => `${lat.toFixed(5)}, ${lng.toFixed(5)}`
