import { test } from 'tap'
import type { FromWorker } from '../../src/console/live/messages.ts'
import { openLive, type Socket } from '../../src/console/live/socket.ts'

const OPEN = 1

/** A live channel over sockets that are made up, and a clock that is moved by hand. */
const openWorld = () => {
  const sockets: (Socket & { sent: string[] })[] = []
  const timers: { at: number; run: () => void }[] = []
  const told: FromWorker[] = []
  let now = 0
  const live = openLive({
    open: () => {
      const sent: string[] = []
      const socket = { readyState: 0, sent, send: (text: string) => void sent.push(text), close: () => undefined }
      sockets.push({ ...socket, onopen: null, onmessage: null, onclose: null })
      return sockets.at(-1)
    },
    later: (run, ms) => void timers.push({ at: now + ms, run }),
    tell: (message) => void told.push(message),
  })
  const wait = (ms: number): void => {
    const end = now + ms
    for (;;) {
      const due = timers.filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0]
      if (due === undefined) break
      timers.splice(timers.indexOf(due), 1)
      now = due.at
      due.run()
    }
    now = end
  }
  const accept = (): void => {
    const socket = sockets.at(-1)!
    socket.readyState = OPEN
    socket.onopen?.()
    say({ type: 'snapshot', id: 'map', positions: [], cursor: `c${sockets.length}` })
  }
  const say = (message: object): void => sockets.at(-1)!.onmessage?.({ data: JSON.stringify(message) })
  const states = (): string[] => told.flatMap((one) => (one.type === 'connection' ? [one.connection] : []))
  live.hear({ type: 'open', url: 'ws://here', token: 't', subscription: { channels: ['positions'], interval: 250 } })
  accept()
  return { live, sockets, told, wait, accept, say, states }
}

test('a connection that died while the machine slept is noticed within seconds, and goes on where it was', async (t) => {
  const { live, sockets, wait, accept, states } = openWorld()
  live.hear({ type: 'woke' })
  t.match(sockets[0]!.sent.at(-1), /"id":"alive"/, 'it is asked at once')
  wait(4_000)
  t.same(states(), ['live', 'lost'])
  wait(500)
  t.equal(sockets.length, 2)
  accept()
  t.match(sockets[1]!.sent[1], /"since":"c1"/)
  t.same(states(), ['live', 'lost', 'live'])
})

test('a connection that outlived a sleep stays', async (t) => {
  const { live, sockets, wait, say, states } = openWorld()
  live.hear({ type: 'woke' })
  say({ type: 'snapshot', id: 'alive', positions: [] })
  wait(4_000)
  t.same(states(), ['live'])
  t.equal(sockets.length, 1)
})

test('a role that may not see geofences has the map all the same, and their events once it may', async (t) => {
  const { live, sockets, told, say, states } = openWorld()
  const sent = (): { id?: string; channels?: string[]; since?: string }[] =>
    sockets[0]!.sent.map((text) => JSON.parse(text))
  const asked = () => sent().filter(({ id }) => id === 'fences')
  t.notOk(
    sent()
      .find(({ id }) => id === 'map')!
      .channels!.includes('geofence'),
  )
  t.same(
    asked().map(({ channels }) => channels),
    [['geofence']],
  )
  say({ type: 'error', id: 'fences', code: 'forbidden', message: 'You lack the permission view/geofence.' })
  t.same(states(), ['live'])
  t.equal(told.at(-1)?.type, 'refused')
  live.hear({ type: 'permissions' })
  t.equal(asked().length, 2)
  say({ type: 'snapshot', id: 'fences', positions: [], cursor: 'f1' })
  t.same(states(), ['live'], 'it is no snapshot of the map')
  live.hear({ type: 'permissions' })
  t.equal(asked().at(-1)?.since, 'f1')
})
