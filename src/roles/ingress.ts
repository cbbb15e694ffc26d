import { deviceRoutes } from '../features/devices/http-routes.ts'
import { bulkRoute } from '../features/locations/ingest/bulk-api.ts'
import { ingestChannel } from '../features/locations/ingest/channel.ts'
import { openPointDoor } from './point-door.ts'
import type { OpenRole } from './role.ts'

/** Entrance for points: identifies their trackers and writes them to the log. */
export const openIngress: OpenRole = async (services) => {
  const { store, devices, drain, close } = await openPointDoor(services)
  return {
    routes: [bulkRoute(store, services.keyring), ...deviceRoutes(devices)],
    channels: [ingestChannel(store)],
    drain,
    close,
  }
}
