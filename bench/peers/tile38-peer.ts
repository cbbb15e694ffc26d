import { connect } from 'node:net'
import { once } from 'node:events'
import type { Peer } from './peer.ts'
import { command, RespLine } from './resp-line.ts'

const CHANNELS_AT_ONCE = 200
const TOLD = '"detect":"'

/**
 * A Tile38 (https://tile38.com/commands/setchan/): a channel for each fence that tells entries and exits, and `SET` for each
 * point. It keeps the latest place of a tracker; older points are gone.
 */
export const tile38Peer = async (address: string): Promise<Peer> => {
  const { hostname, port: given } = new URL(`tcp://${address}`)
  const port = Number(given || 9851)
  const heard = await listen(hostname, port)
  return {
    name: 'Tile38',
    promise: 'written to its file, which it syncs once a second; the latest place alone is kept',
    connectionsMax: 200,
    load: async (fences) => {
      const line = await RespLine.open(hostname, port)
      for (let first = 0; first < fences.length; first += CHANNELS_AT_ONCE) {
        const some = fences.slice(first, first + CHANNELS_AT_ONCE)
        const channels = some.map(({ geometry }, i) =>
          command(
            ...['SETCHAN', `fence:${first + i}`, 'INTERSECTS', 'fleet', 'FENCE', 'DETECT', 'enter,exit'],
            ...['COMMANDS', 'set', 'OBJECT', JSON.stringify(geometry)],
          ),
        )
        await line.send(channels.join(''), some.length)
      }
      await line.close()
    },
    openLine: async () => {
      const line = await RespLine.open(hostname, port)
      return {
        send: (fixes) =>
          line.send(
            fixes.map(({ tracker, lat, lng }) => command('SET', 'fleet', tracker, 'POINT', lat, lng)).join(''),
            fixes.length,
          ),
        close: () => line.close(),
      }
    },
    transitions: async () => heard.count(),
    close: () => heard.close(),
  }
}

/** Counts what all channels tell. */
const listen = async (host: string, port: number): Promise<{ count(): number; close(): Promise<void> }> => {
  const socket = connect(port, host)
  await once(socket, 'connect')
  socket.setEncoding('latin1')
  let told = 0
  let rest = ''
  socket.on('data', (text) => {
    rest += text
    for (let at = rest.indexOf(TOLD); at >= 0; at = rest.indexOf(TOLD, at + TOLD.length)) told++
    rest = rest.slice(-(TOLD.length - 1)) // one may be cut in the middle, and none counts twice
  })
  socket.write(command('PSUBSCRIBE', 'fence:*'))
  return {
    count: () => told,
    close: async () => {
      socket.destroy()
      await once(socket, 'close')
    },
  }
}
