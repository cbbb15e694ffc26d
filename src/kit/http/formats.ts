import type { Ajv2020 } from 'ajv/dist/2020.js'
import addFormatsModule from 'ajv-formats'

/** The package is CommonJS: its plugin is the module itself. */
const addStandardFormats = addFormatsModule as unknown as (
  target: Ajv2020,
  options: { mode: 'full'; formats: string[] },
) => void

/** The formats that schemas may name: `date`, `email`, `uri`, `uuid` of any version, `date-time` (RFC 3339), `time-zone` (IANA). */
export const addFormats = (ajv: Ajv2020): void => {
  addStandardFormats(ajv, { mode: 'full', formats: ['date', 'email', 'uri'] })
  ajv.addFormat('uuid', /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i)
  ajv.addFormat('date-time', isDateTime)
  ajv.addFormat('time-zone', isTimeZone)
}

const RFC_3339 =
  /^\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])[Tt ]([01]\d|2[0-3]):[0-5]\d:[0-5]\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$/

const isDateTime = (value: string): boolean => {
  if (!RFC_3339.test(value)) return false
  // Date.parse takes 31 February for 3 March.
  const lastDay = new Date(Date.UTC(Number(value.slice(0, 4)), Number(value.slice(5, 7)), 0)).getUTCDate()
  return !Number.isNaN(Date.parse(value)) && Number(value.slice(8, 10)) <= lastDay
}

const isTimeZone = (value: string): boolean => {
  try {
    return new Intl.DateTimeFormat('en', { timeZone: value }).resolvedOptions().timeZone !== ''
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}
