import { recalledRequests } from '../../projections/recalled-requests.ts'
import { decodeRuns, type RunsEntry } from '../../projections/runs-history.ts'
import type { FeatureServices } from '../feature.ts'
import { runsStream } from '../features/automations/events.ts'
import type { ListenerState } from '../features/devices/device-listeners.ts'
import type { BridgeState } from '../features/devices/mqtt-bridge.ts'
import { inRollout } from '../features/geofences/rollout.ts'
import { locationStream, type LocationEntry } from '../features/locations/events.ts'
import { locationEntry } from '../features/locations/location-entry.ts'
import { transitionStream } from '../features/transitions/events.ts'
import type { Lag } from '../kit/consumers/follower.ts'
import { PartitionFeed } from '../kit/consumers/partition-feed.ts'
import { settling } from '../kit/consumers/settle.ts'
import type { Channel } from '../kit/http/channel.ts'
import type { Route } from '../kit/http/route.ts'
import { createMetrics } from '../kit/operations/metrics.ts'
import type { Services } from '../kit/services.ts'
import { deletedRecords } from '../operations/deleted-records.ts'
import { InTurn } from '../operations/in-turn.ts'
import type { OperationServices } from '../operations/services.ts'
import { actionsOf, processesOf, PROJECTIONS, resources } from '../product-parts.ts'
import { decodeTransition, type TransitionEntry } from '../reactors/dispatch/owe.ts'

/** Families of partition streams, each read once for all consumers in this process. */
export interface Feeds {
  locations: PartitionFeed<LocationEntry>
  transitions: PartitionFeed<TransitionEntry>
  runs: PartitionFeed<RunsEntry>
}

export interface ServiceParts
  extends Pick<
    FeatureServices,
    'config' | 'origin' | 'owners' | 'life' | 'caller' | 'mailer' | 'travelTimes' | 'backtestPointsMax'
  > {
  services: Services & Pick<FeatureServices, 'processes'>
}

export interface RoleServices extends OperationServices {
  feeds: Feeds
}

/** A part of the service that is opened and closed by itself. */
export interface Role {
  routes?: readonly Route[]
  channels?: readonly Channel[]
  /** Lag of its consumers, except those of partition streams. */
  lags?(): Lag[]
  /** Ports of devices, for `waymark doctor`. */
  listeners?(): ListenerState[]
  /** Brokers that deliver points, for `waymark doctor`. */
  bridges?(): BridgeState[]
  /** The service is not ready until it resolves; never rejects. */
  ready?: Promise<unknown>
  /** Stores everything accepted, once the door accepts nothing more. */
  drain?(): Promise<void>
  close(): Promise<void>
}

export type OpenRole = (services: RoleServices) => Promise<Role>

export const roleServices = ({ services, ...parts }: ServiceParts, publicUrl: string): RoleServices => {
  const { log, logger, clock } = services
  const settle = settling(services, PROJECTIONS)
  services.processes.know(processesOf({ ...services, resources, quotas: undefined }, deletedRecords(services, settle)))
  const prefixes = PROJECTIONS.flatMap((projection) => projection.prefixes)
  return {
    ...services,
    ...parts,
    resources,
    projections: [...PROJECTIONS, recalledRequests(clock, prefixes)],
    actions: actionsOf({ ...services, resources, caller: parts.caller, mailer: parts.mailer, publicUrl }),
    feeds: {
      locations: new PartitionFeed({ log, logger, streamOf: locationStream, decode: locationEntry }),
      transitions: new PartitionFeed({ log, logger, streamOf: transitionStream, decode: decodeTransition }),
      runs: new PartitionFeed({ log, logger, streamOf: runsStream, decode: decodeRuns }),
    },
    settle,
    metrics: createMetrics(),
    upkeepTurns: new InTurn(),
    publicUrl,
    inRollout: inRollout(parts.config),
  }
}
