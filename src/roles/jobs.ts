import { ANNOUNCE_DELETIONS, ANNOUNCE_FENCES } from '../features/locations/events.ts'
import { sampleVehicles } from '../features/vehicles/samples.ts'
import { trackerLookups } from '../features/trackers/views.ts'
import { ownedPart } from '../kit/consumers/owners.ts'
import type { Follower, Lag } from '../kit/consumers/follower.ts'
import { announceDeletions } from '../reactors/announce/deletions.ts'
import { announceFences } from '../reactors/announce/fences.ts'
import { BACKTEST_RUNS, BacktestJobs } from '../reactors/backtests/backtest-jobs.ts'
import { SCHEDULED_TASKS, ScheduledTasks } from '../reactors/schedules/make-tasks.ts'
import { CHECK_RECORDS, checkRecords } from '../reactors/records/check-records.ts'
import { MAIL, sendMails } from '../reactors/mail/send-mails.ts'
import { TAKE_BACK, takeBackDeletions } from '../reactors/references/take-back.ts'
import { TAKE_OUT, takeOutReferences } from '../reactors/references/take-out.ts'
import { CARRY_ON } from '../processes/runner.ts'
import { MAKE_SAMPLES, makeSamples } from '../reactors/samples/make-samples.ts'
import { DELETE_ATTACHMENTS, deleteAttachments } from '../reactors/sweep/delete-attachments.ts'
import { sampleWork } from '../reactors/samples/sample-work.ts'
import { UPKEEP } from '../reactors/upkeep/upkeep.ts'
import { resources } from './product.ts'
import type { OpenRole } from './role.ts'
import { openUpkeep } from './upkeep.ts'

const DAY_MS = 86_400_000

/** What is done once in the whole service, by whichever process owns it. */
export const openJobs: OpenRole = async (services) => {
  const { config, tables, owners, origin, clock, processes, metrics } = services
  const running = new Set<{ lags(): Lag[] }>()
  /** What is open is asked for its lags. */
  const shown = <Part extends { close(): Promise<void> }>(part: Part, lags: () => Lag[]) => {
    const entry = { lags }
    running.add(entry)
    return {
      close: async () => {
        running.delete(entry)
        await part.close()
      },
    }
  }
  const follows = (follower: Follower) => shown(follower, () => [follower.lag(clock.now())])
  const { tripStopMs, tripGapMs, geofenceRollout } = config
  const settings = { tripStopMs, tripGapMs, rollout: geofenceRollout === '*' ? ('*' as const) : [...geofenceRollout] }
  const { visibleTrackers } = trackerLookups(tables)
  const makers = [sampleVehicles({ ...services, resources }), sampleWork({ ...services, resources })]
  metrics.beforeScrape(() => metrics.processesStuck.set(processes.stuck))
  const joined = await owners.join([
    ownedPart(ANNOUNCE_FENCES, async (isOurs) => follows(await announceFences({ ...services, isOurs }, settings))),
    ownedPart(ANNOUNCE_DELETIONS, async (isOurs) => follows(announceDeletions({ ...services, isOurs }, origin.epoch))),
    ownedPart(TAKE_OUT, async (isOurs) => follows(takeOutReferences({ ...services, resources, isOurs }))),
    ownedPart(TAKE_BACK, async (isOurs) => follows(takeBackDeletions({ ...services, resources, isOurs }))),
    ownedPart(DELETE_ATTACHMENTS, async (isOurs) => follows(deleteAttachments({ ...services, isOurs }))),
    ownedPart(SCHEDULED_TASKS, async () => new ScheduledTasks({ ...services, resources }).start()),
    ownedPart(CHECK_RECORDS, async (isOurs) => follows(checkRecords({ ...services, isOurs }))),
    ownedPart(MAIL, async (isOurs) => {
      const onMail = (outcome: string): void => metrics.mails.inc({ outcome })
      const mails = await sendMails({ ...services, resources, isOurs, onMail })
      return shown(mails, () => [mails.follower.lag(clock.now())])
    }),
    ownedPart(MAKE_SAMPLES, async (isOurs) => follows(await makeSamples({ ...services, makers, isOurs }))),
    ownedPart(BACKTEST_RUNS, async (isOurs) => {
      const keepMs = config.automationLogDays * DAY_MS
      const jobs = await new BacktestJobs({ ...services, visibleTrackers, keepMs, isOurs }).start()
      return shown(jobs, () => jobs.lag(clock.now()))
    }),
    ownedPart(CARRY_ON, async () => {
      processes.startCarryingOn()
      return { close: () => processes.stopCarryingOn() }
    }),
    ownedPart(UPKEEP, async (isOurs) => {
      const upkeep = await openUpkeep(services, isOurs)
      return shown(upkeep, upkeep.lags)
    }),
  ])
  return {
    lags: () => [...running].flatMap(({ lags }) => lags()),
    close: () => joined.leave(),
  }
}
