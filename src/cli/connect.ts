import { renderUnicodeCompact } from 'uqr'
import { ConfigError } from '../config-values.ts'
import { type ApiClient, dataOf } from './api-client.ts'
import { clientOf, CONNECTION_OPTIONS, CONNECTION_USAGE, parseOptions, signIn } from './credentials.ts'
import { print } from './print.ts'

const USAGE = `waymark connect --app <app> [--tracker <id or name>] [options]
Connects a phone: makes a tracker, or gives one that exists a new key, and prints the QR code that its app scans.
Apps: owntracks, traccar, osmand, gpslogger, overland.

${CONNECTION_USAGE}
  --app       none                    the app on the phone
  --tracker   none                    id or name of a tracker that exists: its key so far ends at once
  --name      Phone                   name of the tracker that is made where none is given
`

interface Tracker {
  _id: string
  name: string
}

export const connectCommand = async (args: readonly string[]): Promise<number> => {
  const options = {
    ...CONNECTION_OPTIONS,
    app: { type: 'string' },
    tracker: { type: 'string' },
    name: { type: 'string', default: 'Phone' },
  } as const
  const { values } = parseOptions(args, options)
  if (values.help) return print(USAGE)
  if (values.app === undefined) throw new ConfigError('give --app; waymark connect --help lists them')
  const client = clientOf(values)
  const token = await signIn(client, values)
  const tracker = await trackerOf(client, token, values.tracker as string | undefined, values.name as string)
  const body = { app: values.app }
  const answer = await client.call('POST', `/tracker/${tracker._id}/provisioning`, { token, body })
  if (answer.status === 400) throw new ConfigError(answer.json?.message)
  const { url, link, qr }: { url: string; link: string; qr: string } = dataOf(answer)
  return print(`${renderUnicodeCompact(qr, { border: 2 })}\n${tracker.name} (${tracker._id})\n${textOf(url, link)}`)
}

const textOf = (url: string, link: string): string => {
  const unreachable = /^https?:\/\/(127\.|localhost|\[::1\])/.test(url)
    ? 'A phone cannot reach that address: start the service with --host and --public-url.\n'
    : ''
  return `Address: ${url}\n${link === url ? '' : `Link:    ${link}\n`}${unreachable}`
}

const trackerOf = async (
  client: ApiClient,
  token: string,
  named: string | undefined,
  name: string,
): Promise<Tracker> => {
  if (named === undefined)
    return dataOf(await client.call('POST', '/tracker', { token, body: { name, kind: 'device' } }))
  const isId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(named)
  const question = isId ? `_id=${named}` : `name=${encodeURIComponent(named)}`
  const found: Tracker[] = dataOf(await client.call('GET', `/trackers?${question}`, { token }))
  if (found.length === 1) return found[0]
  throw new ConfigError(
    `${found.length === 0 ? 'no tracker is' : 'several trackers are'} called "${named}"; give its id`,
  )
}
