import type { Heard } from '../point.ts'
import { type Form, readForm } from '../url-form.ts'

/** OsmAnd and GPSLogger: speed in m/s, and OsmAnd's `hdop` is its accuracy in metres. */
export const readOsmAnd = (form: Form, now: number): Heard =>
  readForm(form, now, {
    accuracyOf: (one) => one.accuracy ?? one.acc ?? one.hacc ?? one.hdop,
    speedOf: (speed) => speed,
    dilutionOf: () => undefined,
  })
