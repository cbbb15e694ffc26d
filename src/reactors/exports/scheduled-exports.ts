import { pagesOf } from '../../engines/table-store.ts'
import { exportConfig } from '../../features/exports/export-config.ts'
import { DUE_EXPORTS, type DueExportRow, nextExport } from '../../features/exports/export-schedule.ts'
import type { ExportRequested } from '../../features/exports/events.ts'
import {
  assertMayExport,
  type ExportBody,
  type ExportSources,
  openExport,
  questionOf,
} from '../../features/exports/question.ts'
import { EXPORT, EXPORT_BOUNDS } from '../../features/exports/views.ts'
import { timeZoneOf } from '../../features/identity/views.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { NO_ORGANIZATION } from '../../kernel/table.ts'
import { handleCommand } from '../../kit/commands/handle-command.ts'
import { idFrom, idSource } from '../../kit/commands/ids.ts'
import { JobPlaces } from '../../kit/jobs/asking.ts'
import { jobDecider } from '../../kit/jobs/life.ts'
import { assertRoom } from '../../kit/quotas/quotas.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import { Rounds } from '../../kit/operations/rounds.ts'
import type { Services } from '../../kit/services.ts'
import { callerNow } from '../callers/caller-now.ts'

export const SCHEDULED_EXPORTS = 'scheduled-exports'

const LOOK_MS = 5_000
const PAGE_ROWS = 100
const NOTICE_CHARS_MAX = 1_000

export type ScheduledExportServices = ResourceServices & ExportSources & Pick<Services, 'clock' | 'logger'>

/** Requests the exports of due configs, each once: its id is derived from config and due time. */
export class ScheduledExports extends Rounds {
  private readonly services: ScheduledExportServices
  private readonly configs: ResourceWriter
  private readonly places: JobPlaces
  private readonly end = new AbortController()

  constructor(services: ScheduledExportServices) {
    super(services.clock, LOOK_MS)
    this.services = services
    this.configs = exportConfig.writer(services)
    this.places = new JobPlaces(services.tables, EXPORT_BOUNDS)
  }

  override close(): Promise<void> {
    this.end.abort()
    return super.close()
  }

  protected failed(error: unknown): void {
    this.services.logger.warn('due exports could not be asked for', { error: String(error) })
  }

  /** A config that cannot be served now waits for the next look, and blocks none of the others. */
  protected async work(): Promise<void> {
    const { tables, clock, logger } = this.services
    const range = { field: 'nextAt', to: clock.now() }
    const question = { range, sort: { field: 'nextAt', order: 'asc' as const }, limit: PAGE_ROWS }
    for await (const page of pagesOf<DueExportRow>(tables, DUE_EXPORTS.name, NO_ORGANIZATION, question))
      for (const { id, row } of page) {
        if (this.end.signal.aborted) return
        await this.ask(row.organizationId, id).catch((error: unknown) =>
          logger.warn('a due export could not be asked for', { exportConfigId: id, error: String(error) }),
        )
      }
  }

  /** Due times missed meanwhile are one export: its rows are the present ones. */
  private async ask(organizationId: string, id: string): Promise<void> {
    const now = this.services.clock.now()
    const { state } = await this.configs.load(id)
    const { values } = state
    const isDue = state.status === 'live' && values.nextAt !== undefined && Date.parse(String(values.nextAt)) <= now
    if (!isDue) return
    const notice = await this.request(organizationId, id, values, now)
    const nextAt = nextExport(values, now)
    const metadata = { organizationId, actor: `schedule:${id}` }
    const origin = { organizationId, now, ids: idSource(now), metadata }
    await this.configs.update(origin, id, ({ nextAt: was, notice: _notice, ...others }) => ({
      ...others,
      ...(notice !== undefined && { notice }),
      // A change of the schedule meanwhile has set the due time.
      ...(was === values.nextAt ? nextAt !== undefined && { nextAt } : was !== undefined && { nextAt: was }),
    }))
  }

  /** Answers the reason if there is none this time. @throws Failure rate_limited, overloaded, engine_down */
  private async request(
    organizationId: string,
    configId: string,
    values: JsonObject,
    now: number,
  ): Promise<string | undefined> {
    const { log } = this.services
    const id = idFrom('scheduled-export', configId, String(values.nextAt))
    try {
      await assertRoom(this.services.quotas, organizationId, 'filesBytes', 1)
      const requested = await this.requestedOf(organizationId, configId, values, now)
      await this.places.keep(organizationId, id)
      const metadata = { organizationId, actor: `schedule:${configId}`, $correlationId: id }
      const ids = { next: () => idFrom('scheduled-export-event', id), isRepeat: undefined }
      await handleCommand(
        log,
        EXPORT.stream(id),
        jobDecider(EXPORT, id),
        { kind: 'request', requested },
        { ids, metadata },
      )
    } catch (error) {
      this.places.release(organizationId, id)
      const isTold = error instanceof Failure && error.status < 500 && error.code !== 'rate_limited'
      if (!isTold) throw error
      return `No export was made for ${values.nextAt}: ${error.message}`.slice(0, NOTICE_CHARS_MAX)
    }
    return undefined
  }

  /** @throws Failure forbidden, invalid */
  private async requestedOf(
    organizationId: string,
    exportConfigId: string,
    { target, schedule, scheduledBy }: JsonObject,
    now: number,
  ): Promise<ExportRequested> {
    const { tables } = this.services
    const userId = String(scheduledBy)
    const kind = target === 'data' ? 'data' : 'task'
    const caller = await callerNow(tables, organizationId, userId, now)
    if (caller === undefined)
      throw new Failure('forbidden', { message: 'The user who wrote the schedule may not export any more.' })
    assertMayExport(caller, kind)
    const body: ExportBody = { exportConfigId }
    const question = await questionOf(this.services, caller, kind, body)
    const { walk } = await openExport(this.services, caller, question, now, this.end.signal)
    const timeZone = await timeZoneOf(tables, organizationId)
    const emails = (schedule as { emails?: string[] }).emails ?? []
    const asked = { organizationId, userId, at: now, ...question, timeZone, total: walk.total, isDirect: false }
    return { ...asked, ...(emails.length > 0 && { emails }) }
  }
}
