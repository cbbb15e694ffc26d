import type { Peer } from './peer.ts'
import { command, RespLine } from './resp-line.ts'

/** Memory of the streams would grow with the run: about a minute of each tracker is kept. */
const ENTRIES_MAX = 1_000

/**
 * A Redis with `appendfsync always`: the place of each tracker in a geospatial index, and its points in a stream of its own.
 * It knows no polygons, so nothing is matched.
 */
export const redisPeer = (url: string): Peer => {
  const { hostname, port } = new URL(url)
  return {
    name: 'Redis',
    promise: 'on the disk with `appendfsync always`; a minute of points is kept; no fences',
    connectionsMax: 200,
    load: async () => undefined,
    openLine: async () => {
      const line = await RespLine.open(hostname, Number(port || 6379))
      return {
        send: (fixes) => {
          let places = ''
          const words: (string | number)[] = ['GEOADD', 'fleet']
          for (const { tracker, lat, lng, recordedAt } of fixes) {
            words.push(lng, lat, tracker)
            places += command(
              ...['XADD', `points:${tracker}`, 'MAXLEN', '~', ENTRIES_MAX, '*'],
              ...['lat', lat, 'lng', lng, 'at', recordedAt],
            )
          }
          return line.send(command(...words) + places, fixes.length + 1)
        },
        close: () => line.close(),
      }
    },
    transitions: async () => undefined,
    close: async () => undefined,
  }
}
