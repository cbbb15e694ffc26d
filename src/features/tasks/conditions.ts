import type { Range } from '../../engines/table-store.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import type { ListConditions } from '../../kit/http/answer-list.ts'
import { boxParameter } from '../../kit/http/bbox-parameter.ts'
import { ABSENT_VALUE, type ListQuery } from '../../kit/http/list-query.ts'
import { formatTime } from '../../kit/http/request-context.ts'
import { timeBounds } from '../../kit/http/time-parameter.ts'
import { withinBox } from './cells.ts'
import { componentConditions } from './component-filters.ts'
import { type ExternalIdServices, writtenExternalIds } from './external-ids.ts'
import { windowConditions } from './window.ts'

/** Conditions of a task list that need more than one filter, or another record. */
export const taskConditions =
  (services: ExternalIdServices) =>
  async (query: ListQuery, caller: UserCaller): Promise<ListConditions> => {
    const { from, to, finishedFrom, finishedTo } = query as { [name: string]: string | undefined }
    const window = windowConditions(timeBounds({ from, to }))
    const finished = timeBounds({ from: finishedFrom, to: finishedTo }, { from: 'finishedFrom', to: 'finishedTo' })
    const box = query.bbox === undefined ? undefined : withinBox(boxParameter(query.bbox as string))
    const ranges: Range[] = [
      ...(window.ranges ?? []),
      ...(finishedFrom === undefined && finishedTo === undefined
        ? []
        : [
            {
              field: 'finishedAt',
              from: finished.from && formatTime(finished.from),
              to: finished.to && formatTime(finished.to),
            },
          ]),
      ...(box?.ranges ?? []),
    ]
    const externalIds = [query.externalId ?? []].flat() as string[]
    const isExact = externalIds.length === 0 || externalIds.includes(ABSENT_VALUE)
    return {
      where: {
        ...(!isExact && { externalId: await writtenExternalIds(services, caller.organizationId, externalIds) }),
        ...window.where,
        ...(box !== undefined && { cells: box.cells }),
      },
      ranges,
      ...(await componentConditions(services.tables, caller, query)),
    }
  }
