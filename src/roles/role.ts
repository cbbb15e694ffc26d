import type { Config } from '../config.ts'
import type { HttpCaller } from '../engines/http-caller.ts'
import type { Mailer } from '../engines/mailer.ts'
import { deletedRecords } from './deleted-records.ts'
import { InTurn } from './in-turn.ts'
import { runsStream } from '../features/automations/events.ts'
import { locationStream, type LocationEntry } from '../features/locations/events.ts'
import { locationEntry } from '../features/locations/location-entry.ts'
import { transitionStream } from '../features/transitions/events.ts'
import type { UserCaller } from '../kernel/caller.ts'
import type { Lag } from '../kit/consumers/follower.ts'
import type { LogOrigin } from '../kit/consumers/log-origin.ts'
import type { Owners } from '../kit/consumers/owners.ts'
import { PartitionFeed } from '../kit/consumers/partition-feed.ts'
import type { Projection } from '../kit/consumers/projection.ts'
import { type Settle, settling } from '../kit/consumers/settle.ts'
import type { Channel } from '../kit/http/channel.ts'
import type { Route } from '../kit/http/route.ts'
import type { Life } from '../kit/operations/life.ts'
import { createMetrics, type Metrics } from '../kit/operations/metrics.ts'
import type { Services } from '../kit/services.ts'
import { decodeTransition, type TransitionEntry } from '../reactors/dispatch/owe.ts'
import { recalledRequests } from '../../projections/recalled-requests.ts'
import { decodeRuns, type RunsEntry } from '../../projections/runs-history.ts'
import type { Actions } from '../reactors/dispatch/actions/action.ts'
import { actionsOf } from '../reactors/dispatch/actions/list.ts'
import { listProcesses } from '../processes/list.ts'
import type { ProcessRunner } from '../processes/runner.ts'
import { inRollout, PROJECTIONS, resources } from './product.ts'

/** The families of streams that partitions have, each read once for all who follow it in this process. */
export interface Feeds {
  locations: PartitionFeed<LocationEntry>
  transitions: PartitionFeed<TransitionEntry>
  runs: PartitionFeed<RunsEntry>
}

/** What `openService` is handed. */
export interface ServiceParts {
  config: Config
  services: Services & { processes: ProcessRunner }
  origin: LogOrigin
  owners: Owners
  /** Of this process. */
  life: Life
  caller: HttpCaller
  mailer: Mailer
  /** Points that a back-test reads for one answer; more make it a job. */
  backtestPointsMax?: number
}

/** All that a role is opened with. */
export interface RoleServices extends Services, Omit<ServiceParts, 'services'> {
  projections: readonly Projection[]
  processes: ProcessRunner
  /** What automations can do. */
  actions: Actions
  feeds: Feeds
  settle: Settle
  metrics: Metrics
  /** What links in mails begin with. */
  publicUrl: string
  /** What works on whole streams and tables, of this process, one after the other. */
  upkeepTurns: InTurn
  /** Whether geofences are there for the caller. */
  inRollout(caller: Pick<UserCaller, 'organizationId' | 'verifiedEmail'>): boolean
}

/** A part of the service that is opened and closed by itself. */
export interface Role {
  routes?: readonly Route[]
  channels?: readonly Channel[]
  /** How far what it follows besides the streams of partitions is behind. */
  lags?(): Lag[]
  /** Until then the service is not ready; never rejects. */
  ready?: Promise<unknown>
  /** Stores what the door has taken, once it takes nothing more. */
  drain?(): Promise<void>
  close(): Promise<void>
}

export type OpenRole = (services: RoleServices) => Promise<Role>

export const roleServices = ({ services, ...parts }: ServiceParts, publicUrl: string): RoleServices => {
  const { config } = parts
  const { log, logger } = services
  const settle = settling(services, PROJECTIONS)
  services.processes.know(listProcesses({ ...services, resources }, deletedRecords(services, settle)))
  return {
    ...services,
    ...parts,
    projections: [
      ...PROJECTIONS,
      recalledRequests(
        services.clock,
        PROJECTIONS.flatMap(({ prefixes }) => prefixes),
      ),
    ],
    actions: actionsOf({ ...services, resources, caller: parts.caller, mailer: parts.mailer }),
    feeds: {
      locations: new PartitionFeed({ log, logger, streamOf: locationStream, decode: locationEntry }),
      transitions: new PartitionFeed({ log, logger, streamOf: transitionStream, decode: decodeTransition }),
      runs: new PartitionFeed({ log, logger, streamOf: runsStream, decode: decodeRuns }),
    },
    settle,
    metrics: createMetrics(),
    upkeepTurns: new InTurn(),
    publicUrl,
    inRollout: inRollout(config),
  }
}
