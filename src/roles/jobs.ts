import type { JobServices } from '../feature.ts'
import type { Lag } from '../kit/consumers/follower.ts'
import { ownedPart } from '../kit/consumers/owners.ts'
import { JOBS } from '../kit/jobs/rows.ts'
import { JobRunner } from '../kit/jobs/runner.ts'
import { failedReclaims } from '../operations/failed-reclaims.ts'
import { openUpkeep } from '../operations/upkeep.ts'
import { CARRY_ON } from '../processes/runner.ts'
import { FEATURES } from '../product.ts'
import { TAKE_BACK, takeBackDeletions } from '../reactors/references/take-back.ts'
import { TAKE_OUT, takeOutReferences } from '../reactors/references/take-out.ts'
import { MAKE_SAMPLES, makeSamples } from '../reactors/samples/make-samples.ts'
import { DELETE_ATTACHMENTS, deleteAttachments } from '../reactors/sweep/delete-attachments.ts'
import { UPKEEP } from '../reactors/upkeep/upkeep.ts'
import type { OpenRole } from './role.ts'

const DAY_MS = 86_400_000
/** Jobs of customers that run at a time, over all organizations. */
const JOBS_AT_ONCE_MAX = 2

/** Work done once in the whole service, by the process that owns it. */
export const openJobs: OpenRole = async (services) => {
  const { owners, clock, processes, metrics } = services
  const running = new Set<{ lags(): Lag[] }>()
  const reports: JobServices['reports'] = (part, lags) => {
    const entry = { lags }
    running.add(entry)
    return {
      close: async () => {
        running.delete(entry)
        await part.close()
      },
    }
  }
  const follows: JobServices['follows'] = (name, open) =>
    ownedPart(name, async (isOurs) => {
      const follower = await open(isOurs)
      return reports(follower, () => [follower.lag(clock.now())])
    })
  const makers = FEATURES.flatMap(({ samples }) => samples?.({ ...services, quotas: undefined }) ?? [])
  const scavengesFailed = failedReclaims(services)
  metrics.beforeScrape(() => metrics.processesStuck.set(processes.stuck))
  metrics.beforeScrape(async () => metrics.scavengesFailed.set(await scavengesFailed()))
  const joined = await owners.join([
    ...FEATURES.flatMap(({ jobs }) => jobs?.({ ...services, follows, reports }) ?? []),
    ownedPart(JOBS, async (isOurs) => {
      const works = FEATURES.flatMap((feature) => feature.works?.(services) ?? [])
      const keepMs = services.config.automationLogDays * DAY_MS
      const options = { name: JOBS, works, atOnceMax: JOBS_AT_ONCE_MAX, keepMs }
      const runner = await new JobRunner({ ...services, isOurs }, options).start()
      return reports(runner, () => runner.lag(clock.now()))
    }),
    follows(TAKE_OUT, (isOurs) => takeOutReferences({ ...services, isOurs })),
    follows(TAKE_BACK, (isOurs) => takeBackDeletions({ ...services, isOurs })),
    follows(DELETE_ATTACHMENTS, (isOurs) => deleteAttachments({ ...services, isOurs })),
    follows(MAKE_SAMPLES, (isOurs) => makeSamples({ ...services, makers, isOurs })),
    ownedPart(CARRY_ON, async () => {
      processes.startCarryingOn()
      return { close: () => processes.stopCarryingOn() }
    }),
    ownedPart(UPKEEP, async (isOurs) => {
      const upkeep = await openUpkeep(services, isOurs)
      return reports(upkeep, upkeep.lags)
    }),
  ])
  return {
    lags: () => [...running].flatMap(({ lags }) => lags()),
    close: () => joined.leave(),
  }
}
