import { HAS_ACCURACY, HAS_ALTITUDE, HAS_BATTERY, HAS_HEADING, HAS_SPEED, TRIP_FINISH, TRIP_START } from '../events.ts'
import { base36, degreesText, timeText } from './point-text.ts'
import { trackerIdAt, type PointRows } from './point-rows.ts'

/** Members of a row of history, in the order of its columns. */
export const POINT_MEMBERS = [
  '_id',
  'trackerId',
  'recordedAt',
  'lat',
  'lng',
  'accuracy',
  'altitude',
  'speed',
  'heading',
  'battery',
  'trip',
  'attributes',
] as const

export type PointMember = (typeof POINT_MEMBERS)[number]

/** Id of a point: its tracker and its time in base 36. */
export const pointId = (trackerId: string, recordedAt: number): string => `${trackerId}.${base36(recordedAt)}`

/** Tracker and time of a point's id, or undefined for any other text. */
export const parsePointId = (id: string): { trackerId: string; recordedAt: number } | undefined => {
  const [, trackerId, time] =
    /^([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9a-z]{1,9})$/.exec(id.toLowerCase()) ?? []
  return trackerId === undefined ? undefined : { trackerId, recordedAt: Number.parseInt(time, 36) }
}

export const rowJson = (rows: PointRows, row: number, trackerId = trackerIdAt(rows, row)): string => {
  const at = rows.recordedAt[row]
  return (
    `{"_id":"${pointId(trackerId, at)}","trackerId":"${trackerId}","recordedAt":"${timeText(at)}",` +
    `"lat":${degreesText(rows.lat[row])},"lng":${degreesText(rows.lng[row])}${optionalJson(rows, row)}}`
  )
}

/** Writer of rows with these members alone; other optional values must have been removed before, see `takeOff`. */
export const partialRowJson = (members: ReadonlySet<PointMember>): typeof rowJson => {
  const [hasTracker, hasTime, hasLat, hasLng] = [
    members.has('trackerId'),
    members.has('recordedAt'),
    members.has('lat'),
    members.has('lng'),
  ]
  return (rows, row, trackerId = trackerIdAt(rows, row)) => {
    const at = rows.recordedAt[row]
    return (
      `{"_id":"${pointId(trackerId, at)}"${hasTracker ? `,"trackerId":"${trackerId}"` : ''}${hasTime ? `,"recordedAt":"${timeText(at)}"` : ''}` +
      `${hasLat ? `,"lat":${degreesText(rows.lat[row])}` : ''}${hasLng ? `,"lng":${degreesText(rows.lng[row])}` : ''}${optionalJson(rows, row)}}`
    )
  }
}

const OPTIONAL_FLAGS: { [member in PointMember]?: number } = {
  accuracy: HAS_ACCURACY,
  altitude: HAS_ALTITUDE,
  speed: HAS_SPEED,
  heading: HAS_HEADING,
  battery: HAS_BATTERY,
  trip: TRIP_START | TRIP_FINISH,
}

/** Removes optional values that are not among the members from the rows. */
export const takeOff = (rows: PointRows, members: ReadonlySet<PointMember>): void => {
  let unwanted = 0
  for (const [member, flags] of Object.entries(OPTIONAL_FLAGS))
    if (!members.has(member as PointMember)) unwanted |= flags
  for (let row = 0; row < rows.count; row++) rows.flags[row] &= ~unwanted
  if (!members.has('attributes')) rows.attributes.fill('', 0, rows.count)
}

/** Optional values of a point as members of a JSON object, each after a comma. */
export const optionalJson = (rows: PointRows, row: number): string => {
  const flags = rows.flags[row]
  let text = ''
  if ((flags & HAS_ACCURACY) !== 0) text += `,"accuracy":${rows.accuracy[row] / 100}`
  if ((flags & HAS_ALTITUDE) !== 0) text += `,"altitude":${rows.altitude[row] / 100}`
  if ((flags & HAS_SPEED) !== 0) text += `,"speed":${rows.speed[row] / 100}`
  if ((flags & HAS_HEADING) !== 0) text += `,"heading":${rows.heading[row] / 10}`
  if ((flags & HAS_BATTERY) !== 0) text += `,"battery":${rows.battery[row] / 100}`
  return text + wordsJson(rows, row)
}

/** Optional values that are no numbers. */
export const wordsJson = (rows: PointRows, row: number): string => {
  const flags = rows.flags[row]
  let text = ''
  if ((flags & TRIP_START) !== 0) text += ',"trip":"start"'
  if ((flags & TRIP_FINISH) !== 0) text += ',"trip":"finish"'
  if (rows.attributes[row] !== '') text += `,"attributes":${rows.attributes[row]}`
  return text
}
