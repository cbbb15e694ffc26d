import { setImmediate as nextTurn } from 'node:timers/promises'
import { breathe } from '../../kernel/breath.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject, JsonSchema } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import { compileQuery } from '../../kit/http/compile-query.ts'
import { ABSENT_VALUE } from '../../kit/http/list-query.ts'
import type { Route, RouteRequest } from '../../kit/http/route.ts'
import type { Check } from '../../kit/http/validate.ts'

/** List parameters that are no filters: they choose the page and its form. */
const NO_FILTERS = ['limit', 'page', 'cursor', 'fields', 'sortBy', 'sortOrder']
/** Pages of more than 100 rows are not kept by engines; 500 blocked the event loop for up to 49 ms of processor time. */
const PAGE_ROWS = 125

export interface ExportWalk {
  total: number
  /** All rows, page by page, as the list answers them to the caller. */
  pages(): AsyncGenerator<Row[]>
}

/** Walks a list through its route: visibility, hidden fields and filters are the list's own. */
export class ListWalker {
  private readonly list: Route
  private readonly check: Check

  constructor(list: Route) {
    this.list = list
    this.check = compileQuery(list.query)
  }

  /** Parameters of the list, by name. */
  get parameters(): { readonly [name: string]: JsonSchema } {
    return (this.list.query?.properties ?? {}) as { [name: string]: JsonSchema }
  }

  /** Reads the first page, so that faults of the question are known. @throws Failure invalid, forbidden */
  async walk(
    caller: UserCaller,
    filter: JsonObject,
    fields: string | undefined,
    now: number,
    signal: AbortSignal,
  ): Promise<ExportWalk> {
    const unwanted = Object.keys(filter).find((name) => NO_FILTERS.includes(name))
    if (unwanted !== undefined) throw refused(`/filter/${unwanted}`, 'is no filter')
    const page = async (cursor: string | undefined) => this.page({ caller, now, signal }, filter, fields, cursor)
    const first = await page(undefined)
    const pages = async function* () {
      let at = first
      for (;;) {
        yield at.rows
        if (at.nextCursor === null) return
        signal.throwIfAborted()
        await nextTurn() // two quick pages in one turn are over 10 ms
        await breathe()
        at = await page(at.nextCursor)
      }
    }
    return { total: first.total, pages }
  }

  private async page(
    asked: Pick<RouteRequest, 'caller' | 'now' | 'signal'>,
    filter: JsonObject,
    fields: string | undefined,
    cursor: string | undefined,
  ): Promise<{ rows: Row[]; total: number; nextCursor: string | null }> {
    const query: { [name: string]: unknown } = {}
    for (const [name, value] of Object.entries(filter))
      query[name] = Array.isArray(value) ? value.map(String) : this.asText(name, value)
    Object.assign(query, {
      limit: PAGE_ROWS,
      ...(fields !== undefined && { fields }),
      ...(cursor !== undefined && { cursor }),
    })
    const [fault] = this.check(query)
    if (fault !== undefined) throw refused(`/filter${fault.path}`, fault.message)
    const answered = this.list.handler({ ...asked, query, params: {}, takesRows: true } as never)
    const { body = {} } = await answered.catch((error: unknown) => {
      throw inFilter(error, filter)
    })
    const rows = body.data as Row[]
    return {
      rows,
      total: (body.total as number | undefined) ?? rows.length,
      nextCursor: body.nextCursor as string | null,
    }
  }

  /** Objects are refused by the list, and so is `null` where it takes one text alone, such as `q`. */
  private asText(name: string, value: unknown): unknown {
    if (value === null) return this.parameters[name]?.type === 'string' ? value : ABSENT_VALUE
    return typeof value === 'object' ? value : String(value)
  }
}

const refused = (path: string, message: string): Failure =>
  new Failure('invalid', { message: `${path} ${message}`, errors: [{ path, message }] })

/** Turns the list's error about a parameter into one about the filter. */
const inFilter = (error: unknown, filter: JsonObject): unknown => {
  const [{ path, message }] = (error instanceof Failure && error.code === 'invalid' && error.details.errors) || [{}]
  const isOurs = path !== undefined && message !== undefined && Object.hasOwn(filter, path.slice(1))
  return isOurs ? refused(`/filter${path}`, message) : error
}
