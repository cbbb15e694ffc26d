import { FOUND_ORGANIZATION } from '../../features/identity/processes.ts'
import { HUBS_TABLE, USERS_TABLE } from '../../features/identity/views.ts'
import { Failure } from '../../kernel/errors.ts'
import { decodeJson, type RecordedEvent } from '../../kernel/event.ts'
import { PROCESS, processStream, type ProcessFinished } from '../../kit/commands/process.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { idOfStream } from '../../kit/commands/declared-event.ts'
import { OwnedCheckpoint } from '../../kit/consumers/checkpoint.ts'
import { Follower, type FollowerServices } from '../../kit/consumers/follower.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import type { Services } from '../../kit/services.ts'

export const MAKE_SAMPLES = 'make-samples'

/** Makes the samples of a new organization. It may be called again: nothing is made twice. */
export type SampleMaker = (origin: WriteOrigin, hubId: string) => Promise<void>

interface SampleServices extends Omit<FollowerServices, 'log'>, Pick<Services, 'log' | 'tables'> {
  makers: readonly SampleMaker[]
}

const LOOKS_MAX = 50
const LOOK_MS = 20

/** Follows new organizations. Where it never ran it begins here: older organizations have no use for samples. */
export const makeSamples = async (services: SampleServices): Promise<Follower> => {
  const { tables, log } = services
  const owned = await OwnedCheckpoint.take(tables, MAKE_SAMPLES)
  if (owned.at === undefined) await owned.commit([], { all: await log.headPosition() })
  return new Follower(services, {
    name: MAKE_SAMPLES,
    source: { prefixes: [processStream('')] },
    handle: async ({ events }, signal) => {
      const founded = events.filter(isFounded)
      if (founded.length === 0) return undefined
      for (const event of founded) if (!signal.aborted) await makeFor(services, event)
      return []
    },
  }).start(tables)
}

const isFounded = ({ type, data }: RecordedEvent): boolean => {
  if (type !== PROCESS.finished) return false
  const { process, outcome } = decodeJson<ProcessFinished>(data)
  return process === FOUND_ORGANIZATION.name && outcome === 'done'
}

const makeFor = async (services: SampleServices, event: RecordedEvent): Promise<void> => {
  const { tables, clock, logger, makers } = services
  const organizationId = idOfStream(event.stream)
  const oldest = { sort: { field: 'createdAt', order: 'asc' }, limit: 1 } as const
  const hasUser = async (): Promise<boolean> => (await tables.find(USERS_TABLE, organizationId, oldest)).rows.length > 0
  // The directory has rows in the order of the log, users last: where one exists, missing rows were deleted.
  for (let looks = 1; !(await hasUser()); looks++) {
    if (looks === LOOKS_MAX) throw new Error(`the tables do not have the organization ${organizationId} yet`)
    await new Promise<void>((resume) => void clock.after(LOOK_MS, resume))
  }
  const { rows } = await tables.find(HUBS_TABLE, organizationId, oldest)
  if (rows.length === 0) return
  const metadata = { organizationId, actor: `reactor:${MAKE_SAMPLES}`, $causationId: event.id }
  const now = clock.now()
  for (const make of makers)
    try {
      await make({ organizationId, now, ids: idSource(now), metadata }, rows[0].id)
    } catch (error) {
      // A name is taken, or a rule has changed: an organization can do without a sample.
      if (!(error instanceof Failure) || error.status >= 500) throw error
      logger.warn('samples could not be made', { organizationId, error: error.message })
    }
}
