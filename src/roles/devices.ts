import { BlockList, isIPv6 } from 'node:net'
import { DeviceListeners } from '../features/devices/device-listeners.ts'
import { FlagKey } from '../features/devices/flag-key.ts'
import type { MqttBridge } from '../features/devices/mqtt-bridge.ts'
import { UnknownDevices } from '../features/devices/unknown-devices.ts'
import { DeviceAuthenticator } from '../features/trackers/device-authenticator.ts'
import { watchTrackers } from '../features/trackers/watch-trackers.ts'
import { ownedPart } from '../kit/consumers/owners.ts'
import { openPointDoor, type PointDoor } from './point-door.ts'
import type { OpenRole, RoleServices } from './role.ts'

/** Hardware trackers over TCP and UDP, and messages of an MQTT broker. */
export const openDevices: OpenRole = async (services) => {
  const { config, tables, keyring, clock, logger } = services
  if (config.devices.length === 0 && config.mqttUrl === undefined) return { close: async () => undefined }
  const door = await openPointDoor(services)
  const keys = new DeviceAuthenticator(tables, keyring)
  const watching = await watchTrackers(services, 'devices-keys', { devices: keys })
  const parts = { services, door, keys, unknown: new UnknownDevices({ clock, logger }) }
  const opened: { close(): Promise<void> }[] = [watching, door]
  const close = async (): Promise<void> => {
    for (const one of opened) await one.close()
  }
  try {
    const listeners = await openListeners(parts)
    opened.unshift(listeners)
    const bridge = await openBridge(parts)
    opened.unshift(bridge)
    return { listeners: () => listeners.state(), bridges: bridge.states, drain: door.drain, close }
  } catch (error) {
    await close()
    throw error
  }
}

interface Parts {
  services: RoleServices
  door: PointDoor
  keys: DeviceAuthenticator
  unknown: UnknownDevices
}

const openListeners = async ({ services, door, keys, unknown }: Parts): Promise<DeviceListeners> => {
  const { config, clock, logger } = services
  const key = flagKeyOf(keys, 'devices-key', config.devicesKey ?? '', { clock, logger })
  const session = { points: door.devices, key, admits: door.admits, unknown, clock, logger }
  if (config.devices.length > 0) await key.caller().catch(() => undefined) // logs a key that does not exist
  const where = { host: config.host, allowed: allowedOf(config.devicesAllow) }
  return DeviceListeners.open(config.devices, { ...session, ...where })
}

/** Only one process connects: the broker knows all of them by one name. */
const openBridge = async ({ services, door, keys, unknown }: Parts) => {
  const { config, origin, owners, clock, logger, metrics } = services
  const { mqttUrl: url, mqttKey: key = '' } = config
  if (url === undefined) return { states: () => [], close: async () => undefined }
  let bridge: MqttBridge | undefined
  const states = () => (bridge === undefined ? [] : [bridge.state()])
  metrics.beforeScrape(() => {
    metrics.mqttConnected.reset()
    metrics.mqttWaiting.reset()
    for (const { broker, isConnected, waiting } of states()) {
      metrics.mqttConnected.set({ broker }, isConnected ? 1 : 0)
      metrics.mqttWaiting.set({ broker }, waiting)
    }
  })
  const open = async () => {
    const { MqttBridge } = await import('../features/devices/mqtt-bridge.ts')
    bridge = new MqttBridge({
      url,
      clientId: `waymark-${origin.logId.replaceAll('-', '').slice(-12)}`,
      points: door.devices,
      key: flagKeyOf(keys, 'mqtt-key', key, { clock, logger }),
      secret: key.split('.')[1],
      unknown,
      clock,
      logger,
      count: (result) => metrics.mqttMessages.inc({ result }),
    })
    const opened = bridge
    return {
      close: async () => {
        bridge = undefined
        await opened.close()
      },
    }
  }
  const joined = await owners.join([ownedPart('mqtt-bridge', open)])
  return { states, close: () => joined.leave() }
}

const flagKeyOf = (
  keys: DeviceAuthenticator,
  flag: string,
  key: string,
  parts: Pick<RoleServices, 'clock' | 'logger'>,
): FlagKey => new FlagKey({ flag, key, authenticate: (one) => keys.authenticate(one), ...parts })

const allowedOf = (ranges: readonly string[]): BlockList | undefined => {
  if (ranges.length === 0) return undefined
  const list = new BlockList()
  for (const range of ranges) {
    const [address, bits] = range.split('/')
    list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  return list
}
