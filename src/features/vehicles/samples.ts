import type { JsonObject } from '../../kernel/json.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { vehicle } from './vehicle.ts'

const SAMPLES: readonly JsonObject[] = [
  {
    name: 'Sample van',
    type: 'car',
    capacity: { weight: 800, boxes: 40 },
    speed: 50,
    workingHours: { from: '08:00', to: '16:00' },
    breaks: [{ from: '12:00', to: '12:30' }],
    tags: ['sample'],
  },
  { name: 'Sample truck', type: 'truck', capacity: { weight: 7_500 }, speed: 45, tags: ['sample'] },
  { name: 'Sample bike', type: 'bike', capacity: { weight: 30, boxes: 4 }, speed: 18, tags: ['sample'] },
]

/** Three vehicles for trying out route planning. Deleted ones are not restored. */
export const sampleVehicles =
  (services: ResourceServices) =>
  async (origin: WriteOrigin, hubId: string): Promise<void> => {
    const vehicles = vehicle.writer(services)
    for (const [i, sample] of SAMPLES.entries()) {
      const _id = idFrom('sample-vehicle', origin.organizationId, i)
      const { state } = await vehicles.load(_id)
      if (state.status === 'absent') await vehicles.create(origin, { ...sample, _id, hubId })
    }
  }
