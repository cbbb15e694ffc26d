import { automations as projection } from '../../../projections/automations.ts'
import { listedRuns } from '../../../projections/listed-rows.ts'
import type { Feature } from '../../feature.ts'
import { webhookAction } from '../../reactors/dispatch/actions/webhook.ts'
import { TableDirectory } from '../../reactors/dispatch/directory.ts'
import { dryRun } from '../../reactors/dispatch/dry-run.ts'
import { isFired } from '../../reactors/dispatch/subject-event.ts'
import { trackerLookups } from '../trackers/views.ts'
import { automationRoutes } from './api.ts'
import { automationResource } from './declaration.ts'
import { AUTOMATION_DELETED } from './events.ts'
import { AUTOMATION_EVENTS, automationFeed } from './live-feed.ts'
import { automationRunRoutes } from './runs-api.ts'

export const automations: Feature = {
  resources: [automationResource],
  projections: [projection],
  routes: (services) => {
    const { config, tables, actions } = services
    const directory = new TableDirectory({ ...services, ages: config })
    return [
      ...automationRoutes({
        ...services,
        editor: (...user) => directory.editor(...user),
        isFired,
        dryRun: (automation, asked) => dryRun({ ...services, directory, actions }, automation, asked),
      }),
      ...automationRunRoutes({
        ...services,
        listed: listedRuns(services),
        visibleTrackers: trackerLookups(tables).visibleTrackers,
      }),
    ]
  },
  actions: (services) => ({ webhook: webhookAction(services) }),
  liveEvents: AUTOMATION_EVENTS,
  live: automationFeed,
  deletions: { automation: AUTOMATION_DELETED },
}
