import type { Config } from './config.ts'
import type { HttpCaller } from './engines/http-caller.ts'
import type { Mailer } from './engines/mailer.ts'
import type { TravelTimes } from './engines/travel-times.ts'
import type { Uploads } from './kit/files/uploads.ts'
import type { FileHolders } from './features/files/views.ts'
import type { ShownInAudit } from './features/audit/views.ts'
import type { UserCaller } from './kernel/caller.ts'
import type { TableDeclaration } from './kernel/table.ts'
import type { Process } from './kit/commands/process.ts'
import type { Follower, IsOurs, Lag } from './kit/consumers/follower.ts'
import type { LogOrigin } from './kit/consumers/log-origin.ts'
import type { Owned, Owners } from './kit/consumers/owners.ts'
import type { Projection } from './kit/consumers/projection.ts'
import type { Settle } from './kit/consumers/settle.ts'
import type { Route } from './kit/http/route.ts'
import type { JobWork } from './kit/jobs/attempt.ts'
import type { JobView, KeptJobs } from './kit/jobs/job.ts'
import type { Life } from './kit/operations/life.ts'
import type { Metrics } from './kit/operations/metrics.ts'
import type { ResourceServices } from './kit/resource/declaration.ts'
import type { ResourceSet } from './kit/resource/resource-set.ts'
import type { Resource } from './kit/resource/resource.ts'
import type { Services } from './kit/services.ts'
import type { EventDocument, LiveFeed } from './live/feed.ts'
import type { DeletedRecords } from './processes/erase-organization.ts'
import type { Office } from './processes/office.ts'
import type { ProcessRunner } from './processes/runner.ts'
import type { Actions } from './reactors/dispatch/actions/action.ts'
import type { NotificationServices } from './reactors/dispatch/actions/notification-channels.ts'
import type { SampleMaker } from './reactors/samples/make-samples.ts'
import type { FileOwner } from './reactors/sweep/sweep-files.ts'

/** The services that every part of a process shares. */
export interface FeatureServices extends Services {
  config: Config
  resources: ResourceSet
  /** Read models fed by the whole log. */
  projections: readonly Projection[]
  processes: ProcessRunner
  origin: LogOrigin
  owners: Owners
  life: Life
  caller: HttpCaller
  mailer: Mailer
  /** Left out: distances are great circles. */
  travelTimes?: TravelTimes
  actions: Actions
  settle: Settle
  metrics: Metrics
  /** Prefix of links in mails. */
  publicUrl: string
  /** Points that a back-test reads for one answer; more make it a job. */
  backtestPointsMax?: number
  /** Whether the caller is in the rollout of geofences. */
  inRollout(caller: Pick<UserCaller, 'organizationId' | 'verifiedEmail'>): boolean
}

export interface ApiServices extends FeatureServices {
  uploads: Uploads
  /** Kinds of records that files are attached to. */
  holders: readonly FileHolders[]
  /** `audited` of every feature. */
  audited: { readonly [plural: string]: ShownInAudit | undefined }
  /** Closes the part together with the role; the last one first. */
  kept<Part extends { close(): Promise<void> | void }>(part: Part): Part
}

export interface JobServices extends FeatureServices {
  /** A reactor that follows the log in the process that owns it; its lag is reported. */
  follows(name: string, open: (isOurs: IsOurs) => Promise<Follower> | Follower): Owned
  /** The same for a reactor that is more than its follower. */
  reports<Part extends { close(): Promise<void> }>(part: Part, lags: () => Lag[]): { close(): Promise<void> }
}

export type LiveServices = Pick<FeatureServices, 'log' | 'history' | 'clock' | 'checkpoints' | 'actions' | 'keyring'>

export interface ProcessServices {
  office: Office
  services: ResourceServices
  deletedRecords: DeletedRecords
  /** `deletions` of every feature. */
  deletions: { readonly [noun: string]: string }
  /** `keptJobs` of every feature. */
  keptJobs: readonly KeptJobs[]
}

/**
 * A feature, for the rest of the product. `product.ts` lists the features and roles walk the list, so that adding one
 * is a folder and a line.
 */
export interface Feature {
  /** Declared resources. Their tables are kept by the directory, unless a projection of the feature keeps them. */
  resources?: readonly Resource[]
  /** Read models of its own, fed by the whole log. */
  projections?: readonly Projection[]
  /** Tables that no projection keeps and its routes need. */
  tables?: readonly TableDeclaration[]
  routes?(services: ApiServices): readonly Route[] | Promise<readonly Route[]>
  /** Records that files are attached to. */
  attachments?(services: FeatureServices, uploads: Uploads): FileHolders
  /** Files that it names; unnamed ones are swept. */
  fileOwners?(services: ResourceServices): FileOwner[]
  /** Values of its records as the audit log shows them, by the plural of the resource. */
  audited?: { readonly [plural: string]: ShownInAudit }
  /** Work that one process does for the whole service. */
  jobs?(services: JobServices): readonly Owned[]
  /** The work of customers' jobs; one runner does those of all features. */
  works?(services: FeatureServices): readonly JobWork[]
  /** The same jobs, for the live channel `job`. */
  jobViews?: readonly JobView[]
  /** All its jobs of customers: they end with their organization. */
  keptJobs?: readonly KeptJobs[]
  samples?(services: ResourceServices): SampleMaker
  /** Commands that write several streams. */
  // biome-ignore lint/suspicious/noExplicitAny: each kind has its own data, which only its steps look into
  processes?(services: ProcessServices): readonly Process<any>[]
  /** Actions of automations, by `automationType`. */
  actions?(services: NotificationServices): Actions
  /** Events of live channels, for the AsyncAPI document. */
  liveEvents?: readonly EventDocument[]
  /** Its live channel, where that follows the log. */
  live?(services: LiveServices): LiveFeed
  /** Types of the deletions of records that write their events in a form of their own, by noun. */
  deletions?: { readonly [noun: string]: string }
}
