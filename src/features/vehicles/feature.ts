import type { Feature } from '../../feature.ts'
import { sampleVehicles } from './samples.ts'
import { vehicle } from './vehicle.ts'

export const vehicles: Feature = {
  resources: [vehicle],
  routes: (services) => vehicle.routes(services),
  samples: sampleVehicles,
}
