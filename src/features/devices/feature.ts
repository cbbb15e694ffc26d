import type { Feature } from '../../feature.ts'
import { originOf } from '../../kit/resource/writes.ts'
import { findRow } from '../../kit/resource/show.ts'
import { ResourceWriter } from '../../kit/resource/write.ts'
import { tracker } from '../trackers/declaration.ts'
import { provisioningRoute } from './provisioning.ts'

/** Existing apps and hardware; their points arrive in the roles `ingress` and `devices`. */
export const devices: Feature = {
  routes: (services) => {
    const { declaration } = tracker
    const writer = new ResourceWriter(declaration, services)
    return [
      provisioningRoute({
        publicUrl: services.publicUrl,
        find: (request, trackerId) => findRow(declaration, services, request, trackerId),
        rotate: async (request, trackerId) => {
          const { told, wrote } = await writer.rotate(originOf(request), trackerId)
          return { deviceKey: told?.deviceKey as string, wrote }
        },
      }),
    ]
  },
}
