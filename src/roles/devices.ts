import { BlockList, isIPv6 } from 'node:net'
import { DeviceListeners } from '../features/devices/device-listeners.ts'
import { UnknownDevices } from '../features/devices/unknown-devices.ts'
import { DeviceAuthenticator } from '../features/trackers/device-authenticator.ts'
import { watchTrackers } from '../features/trackers/watch-trackers.ts'
import type { IngestKeyCaller } from '../kernel/caller.ts'
import { Failure } from '../kernel/errors.ts'
import { openPointDoor } from './point-door.ts'
import type { OpenRole } from './role.ts'

/** Hardware trackers over TCP and UDP. */
export const openDevices: OpenRole = async (services) => {
  const { config, tables, keyring, clock, logger } = services
  if (config.devices.length === 0) return { close: async () => undefined }
  const door = await openPointDoor(services)
  const keys = new DeviceAuthenticator(tables, keyring)
  const watching = await watchTrackers(services, 'devices-keys', { devices: keys })
  const caller = callerOf(keys, config.devicesKey as string)
  const unknown = new UnknownDevices({ clock, logger })
  const session = { points: door.devices, caller, admits: door.admits, unknown, clock, logger }
  const where = { host: config.host, allowed: allowedOf(config.devicesAllow) }
  const listeners = await DeviceListeners.open(config.devices, { ...session, ...where }).catch(async (error) => {
    await watching.close()
    throw error
  })
  return {
    listeners: () => listeners.state(),
    drain: door.drain,
    close: async () => {
      await listeners.close()
      await watching.close()
      await door.close()
    },
  }
}

const callerOf = (keys: DeviceAuthenticator, key: string) => async (): Promise<IngestKeyCaller> => {
  const caller = await keys.authenticate(key)
  if (caller.kind === 'ingestKey') return caller
  throw new Failure('unauthenticated', { message: '--devices-key is the key of a tracker; give an ingest key.' })
}

const allowedOf = (ranges: readonly string[]): BlockList | undefined => {
  if (ranges.length === 0) return undefined
  const list = new BlockList()
  for (const range of ranges) {
    const [address, bits] = range.split('/')
    list.addSubnet(address, Number(bits), isIPv6(address) ? 'ipv6' : 'ipv4')
  }
  return list
}
