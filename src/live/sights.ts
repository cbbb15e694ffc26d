import type { TrackerFacts } from '../features/trackers/views.ts'

/** What is known of a tracker beside its name: who sees it, and what of it. */
export type Sight = Omit<TrackerFacts, 'name'>

/** Most that are remembered to be shared. */
const SHARED_MAX = 10_000

/** One object for all trackers with the same hubs and team that are nobody's: most fleets need a few. */
export class Sights {
  private shared = new Map<string, Sight>()

  of({ hubIds, teamId, userId, userHubIds, vehicleId, ownerId }: TrackerFacts): Sight {
    const shared = this.sharedOf(hubIds, teamId)
    if (userId === undefined && vehicleId === undefined && ownerId === undefined) return shared
    return {
      hubIds: shared.hubIds,
      teamId: shared.teamId,
      userId,
      userHubIds: userHubIds && this.sharedOf(userHubIds, undefined).hubIds,
      vehicleId,
      ownerId,
    }
  }

  private sharedOf(hubIds: readonly string[], teamId: string | undefined): Sight {
    const key = JSON.stringify([hubIds, teamId])
    const known = this.shared.get(key)
    if (known !== undefined) return known
    if (this.shared.size === SHARED_MAX) this.shared = new Map()
    const sight = { hubIds, teamId, userId: undefined, userHubIds: undefined, vehicleId: undefined, ownerId: undefined }
    this.shared.set(key, sight)
    return sight
  }
}
