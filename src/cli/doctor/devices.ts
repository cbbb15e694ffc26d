import type { ListenerState } from '../../features/devices/device-listeners.ts'
import type { BridgeState } from '../../features/devices/mqtt-bridge.ts'
import type { Finding } from './findings.ts'

const NAMES_SHOWN_MAX = 5
const AREA = 'devices'

export const listenerFinding = ({ protocol, port, connections, unknown, problem }: ListenerState): Finding => ({
  area: AREA,
  ok: unknown.length === 0 && problem === undefined,
  what: `${protocol} listens on port ${port}${problemText(problem)}, ${connections} connections${refusedText(unknown)}`,
  advice: problem === undefined ? adviceOf('devices-key') : 'give --devices-key an ingest key that exists',
})

export const bridgeFinding = ({ broker, isConnected, waiting, problem, unknown }: BridgeState): Finding => {
  const state = isConnected ? 'is connected' : 'is not connected'
  const isWell = isConnected && problem === undefined
  return {
    area: AREA,
    ok: isWell && unknown.length === 0,
    what: `MQTT broker ${broker} ${state}${problemText(problem)}, ${waiting} messages wait${refusedText(unknown)}`,
    advice: isWell
      ? adviceOf('mqtt-key')
      : 'check --mqtt, --mqtt-key, and that its user may subscribe to owntracks/# and waymark/#; the broker keeps messages meanwhile',
  }
}

const problemText = (problem: string | undefined): string => (problem === undefined ? '' : ` (${problem})`)

/** Names are prefixed with their protocol. */
const refusedText = (unknown: readonly string[]): string => {
  if (unknown.length === 0) return ''
  const names = unknown.slice(0, NAMES_SHOWN_MAX).map((name) => name.slice(name.indexOf(' ') + 1))
  return `, ${unknown.length} refused within the last hour: ${names.join(', ')}`
}

const adviceOf = (flag: string): string =>
  `create trackers with these as externalId, or give --${flag} an ingest key with autoCreate`
