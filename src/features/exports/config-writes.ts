import { isDeepStrictEqual } from 'node:util'
import type { JsonObject } from '../../kernel/json.ts'
import { createdId } from '../../kit/resource/created-id.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { pick } from '../../kit/resource/pick.ts'
import { changedValues, valuesCheck } from '../../kit/resource/values-check.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import type { Change, Deletion, ResourceWrites, WriteOrigin, Written } from '../../kit/resource/writes.ts'
import { assertMapping } from './asked-names.ts'
import { withCurrentNames } from './current-names.ts'
import type { ExportQuestion } from './events.ts'
import { exportConfig } from './export-config.ts'
import { type ExportSources, openExport } from './question.ts'

const ASKED = ['target', 'dataTypeId', 'fields', 'mapping', 'filter', 'format'] as const

/** Writes of configs: changed settings that the export would refuse are refused here too. */
export class ConfigWrites implements ResourceWrites {
  private readonly writer: ResourceWriter
  private readonly sources: ExportSources

  constructor(services: ResourceServices, sources: ExportSources) {
    this.writer = exportConfig.writer(services)
    this.sources = sources
  }

  create(origin: WriteOrigin, body: JsonObject): Promise<Written> {
    const { id, isDrawn } = createdId(exportConfig.declaration, origin, body)
    const making = async () => {
      await this.assertAskable(origin, body)
      return { body }
    }
    return this.writer.make(origin, id, making, isDrawn)
  }

  change(origin: WriteOrigin, change: Change): Promise<Written> {
    const { declaration } = exportConfig
    const current = (values: JsonObject) => withCurrentNames(this.sources.tables, origin.organizationId, values)
    const next = async (kept: JsonObject): Promise<JsonObject> => {
      const before = await current(kept)
      // A body may have been read before a field was renamed.
      const after = await current(changedValues(declaration, valuesCheck(declaration), before, change))
      // A field removed since does not prevent renaming the config, or ending its schedule.
      const asked = after.schedule === undefined ? ASKED : [...ASKED, 'schedule']
      if (!isDeepStrictEqual(pick(after, asked), pick(before, asked))) await this.assertAskable(origin, after)
      return after
    }
    return this.writer.update(origin, change.id, next, change.expectedVersion)
  }

  delete(origin: WriteOrigin, deletion: Deletion): Promise<Written> {
    return this.writer.delete(origin, deletion)
  }

  /** @throws Failure invalid, forbidden with `fields` */
  private async assertAskable({ caller, now }: WriteOrigin, values: JsonObject): Promise<void> {
    const { target: kind, dataTypeId, fields = [], mapping = {}, filter = {}, format = 'csv' } = values
    // A config without its type is refused by the rules of the resource.
    if (caller === undefined || (kind === 'data') !== (typeof dataTypeId === 'string')) return
    const names = fields as string[]
    const question = {
      ...{ kind, mapping, filter, format },
      ...(typeof dataTypeId === 'string' && { dataTypeId: dataTypeId.toLowerCase() }),
      ...(names.length > 0 && { fields: names }),
    } as ExportQuestion
    await assertMapping(this.sources, caller, question)
    await openExport(this.sources, caller, question, now, new AbortController().signal)
  }
}
