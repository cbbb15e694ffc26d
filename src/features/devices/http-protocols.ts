import { readChirpStack } from '../../devices/chirpstack/read.ts'
import { readOsmAnd } from '../../devices/osmand/read.ts'
import { readOverland } from '../../devices/overland/read.ts'
import { readOwnTracks } from '../../devices/owntracks/read.ts'
import type { DevicePoint, Heard } from '../../devices/point.ts'
import { readTraccar, readTraccarForm } from '../../devices/traccar/read.ts'
import { readTtn } from '../../devices/ttn/read.ts'
import type { Form } from '../../devices/url-form.ts'
import { jsonOf, textOf } from '../../devices/values.ts'

export interface DeviceRequest {
  query: Form
  body: Uint8Array
  header(name: string): string | undefined
  /** Key sent with the request. */
  credential: string | undefined
  /** ms since the epoch. */
  now: number
}

/** A protocol over HTTP: how a request is read, and which answer makes its client delete sent points. */
export interface HttpProtocol {
  /** `/in/<path>`; also the word in operationIds. */
  path: string
  operation: string
  clients: string
  /** Points may be in the query alone. */
  takesGet?: true
  bodyBytesMax: number
  /** For the documentation: clients set it carelessly. */
  contentType: string
  example: unknown
  /** What each sender in it said. */
  read(request: DeviceRequest): readonly Heard[]
  /** JSON once everything is durable; absent: only the status is sent. */
  answer?: unknown
}

const ONE_MESSAGE_BYTES = 64 * 1024
/** Regions and cards come in one message each: if refused, they would block the locations in its queue for ever. */
const OWNTRACKS_BYTES = 1024 * 1024
/** Some 7,000 locations; the largest batch of the app has 1,000. */
const BATCH_BYTES = 4 * 1024 * 1024

export const HTTP_PROTOCOLS: readonly HttpProtocol[] = [
  {
    path: 'overland',
    operation: 'Overland',
    clients: 'Overland and Colota',
    bodyBytesMax: BATCH_BYTES,
    contentType: 'application/json',
    example: {
      locations: [
        {
          type: 'Feature',
          geometry: { type: 'Point', coordinates: [21.0122287, 52.2296756] },
          properties: { timestamp: '2026-05-04T09:30:00Z', speed: 4, horizontal_accuracy: 30, battery_level: 0.8 },
        },
      ],
    },
    read: (request) => readJson(request, readOverland),
    answer: { result: 'ok' },
  },
  {
    path: 'owntracks',
    operation: 'OwnTracks',
    clients: 'OwnTracks in HTTP mode',
    bodyBytesMax: OWNTRACKS_BYTES,
    contentType: 'application/json',
    example: { _type: 'location', lat: 52.2296756, lon: 21.0122287, tst: 1777887000, acc: 5, batt: 67, tid: 'JJ' },
    read: (request) => {
      const secret = request.credential?.split('.')[1]
      const name = nameBeside(request)
      return readJson(request, (message) => [readOwnTracks(message, { secret, name })], name)
    },
    answer: [],
  },
  {
    path: 'traccar',
    operation: 'Traccar',
    clients: 'every version of Traccar Client; speed in knots in a query or form',
    takesGet: true,
    bodyBytesMax: ONE_MESSAGE_BYTES,
    contentType: 'application/json',
    example: {
      device_id: 'van-12',
      location: {
        timestamp: '2026-05-04T09:30:00.000Z',
        coords: { latitude: 52.2296756, longitude: 21.0122287, accuracy: 5, speed: 11.2, heading: 270 },
        battery: { level: 0.8, is_charging: false },
      },
    },
    read: (request) => readAny(request, readTraccarForm),
  },
  {
    path: 'osmand',
    operation: 'OsmAnd',
    clients: 'OsmAnd, GPSLogger and whatever fills a URL; speed in m/s',
    takesGet: true,
    bodyBytesMax: ONE_MESSAGE_BYTES,
    contentType: 'application/x-www-form-urlencoded',
    example: 'lat=52.2296756&lon=21.0122287&timestamp=1777887000&speed=11.2&bearing=270',
    read: (request) => readAny(request, readOsmAnd),
  },
  {
    path: 'ttn',
    operation: 'Ttn',
    clients: 'webhooks of The Things Stack',
    bodyBytesMax: BATCH_BYTES,
    contentType: 'application/json',
    example: {
      end_device_ids: { device_id: 'cow-7', dev_eui: '70B3D57ED0000007' },
      received_at: '2026-05-04T09:30:00.954Z',
      uplink_message: { f_port: 1, decoded_payload: { latitude: 52.2296756, longitude: 21.0122287 } },
    },
    read: (request) => readJson(request, (uplink) => [readTtn(uplink)]),
  },
  {
    path: 'chirpstack',
    operation: 'ChirpStack',
    clients: 'the HTTP integration of ChirpStack 4',
    bodyBytesMax: BATCH_BYTES,
    contentType: 'application/json',
    example: {
      deduplicationId: '3ac7e3c4-4401-4b8d-9386-a5c902f9202d',
      time: '2026-05-04T09:30:00.954Z',
      deviceInfo: { devEui: '0101010101010101' },
      object: { latitude: 52.2296756, longitude: 21.0122287 },
    },
    read: (request) => readJson(request, (event) => [readChirpStack(event, textOf(request.query.event))]),
  },
]

/** A point that the store refuses and counts, in place of a message that nobody can read. */
const UNREADABLE: DevicePoint = { recordedAt: Number.NaN, lat: Number.NaN, lng: Number.NaN }

/** `name`: sent beside the message. An empty message says nothing. */
const readJson = (
  { body }: DeviceRequest,
  read: (json: unknown) => readonly Heard[],
  name?: string,
): readonly Heard[] => {
  if (body.byteLength === 0) return []
  const json = jsonOf(body)
  return json === undefined ? [{ points: [UNREADABLE], name }] : read(json)
}

/** Names and units of a form are those of its path, also where a client writes it as JSON. */
const readAny = (request: DeviceRequest, readForm: (form: Form, now: number) => Heard): readonly Heard[] => {
  const { query, now } = request
  if (!isJson(request)) return [readForm(formOf(request), now)]
  const { name } = readForm(query, now)
  return readJson(request, (json) => readTraccar(json, (form) => readForm({ ...query, ...form }, now)), name)
}

/** Clients of this form set their content type carelessly. */
const isJson = ({ body }: DeviceRequest): boolean =>
  /^\s*[{[]/.test(Buffer.from(body.subarray(0, 64)).toString('latin1'))

const formOf = ({ query, body }: DeviceRequest): Form => ({
  ...query,
  ...(body.byteLength > 0 && Object.fromEntries(new URLSearchParams(Buffer.from(body).toString()))),
})

/** OwnTracks sends user and device in headers or in the query. */
const nameBeside = ({ header, query }: DeviceRequest): string | undefined => {
  const user = header('x-limit-u') ?? textOf(query.u)
  const device = header('x-limit-d') ?? textOf(query.d)
  return user === undefined || device === undefined ? undefined : `owntracks/${user}/${device}`
}
