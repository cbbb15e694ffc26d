import type { Feature } from '../../feature.ts'
import { announceDeletions } from '../../reactors/announce/deletions.ts'
import { ANNOUNCE_DELETIONS } from '../locations/events.ts'
import { trackerRoutes } from './api.ts'
import { ingestKey, tracker } from './declaration.ts'
import { TrackerWriter } from './tracker-writer.ts'

export const trackers: Feature = {
  resources: [tracker, ingestKey],
  routes: (services) => trackerRoutes({ ...services, ages: services.config, writer: new TrackerWriter(services) }),
  jobs: ({ follows, origin, ...services }) => [
    follows(ANNOUNCE_DELETIONS, (isOurs) => announceDeletions({ ...services, isOurs }, origin.epoch)),
  ],
}
