import { operationsOf } from './open-api.ts'
import { allPages, ask, call, type Json } from './service.ts'

/** What an owner is shown, by path. */
export type Shown = { [path: string]: Json[] }

export interface Owner {
  email: string
  password: string
}

/** Paths of all lists whose rows stay: sessions and notifications end by themselves. */
export const lastingLists = async (service: { url: string }, token: string): Promise<string[]> => {
  const document = (await call(service, 'GET', '//openapi.json')).json
  const lists: string[] = []
  for (const { method, isRoot, params, path, operationId } of operationsOf(document)) {
    if (method !== 'GET' || isRoot || params.length > 0) continue
    if (['listOwnSessions', 'listNotifications'].includes(operationId)) continue
    const { status, json } = await call(service, 'GET', path, { token })
    if (status === 200 && Array.isArray(json?.data)) lists.push(path)
  }
  return lists
}

/** What does not change by itself of what an owner is shown under these paths. */
export const shownTo = async (
  service: { url: string },
  { email, password }: Owner,
  paths: readonly string[],
): Promise<Shown> => {
  const { token } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
  const shown: Shown = {}
  for (const path of paths) shown[path] = (await rowsOf(service, path, token)).filter(isSettled).map(lasting)
  return shown
}

const rowsOf = async (service: { url: string }, path: string, token: string): Promise<Json[]> => {
  const { json } = await call(service, 'GET', path, { token })
  return json.nextCursor === undefined ? json.data : allPages(service, path, token)
}

/** A trip that is running ends by itself. */
const isSettled = ({ state }: Json): boolean => state !== 'running'

/** Without how long ago a tracker was seen. */
const lasting = (row: Json): Json => {
  if (!['online', 'stale', 'offline'].includes(row.status)) return row
  const { status: _status, ...rest } = row
  return rest
}

/** Rows that are not shown any more as they were; members and rows that are new are no difference. */
export const differing = (before: Shown, after: Shown): string[] =>
  Object.entries(before).flatMap(([path, rows]) =>
    rows
      .filter((row) => !after[path].some((one) => idOf(one) === idOf(row) && has(one, row)))
      .map((row) => `${path}: ${JSON.stringify(row)}`),
  )

const idOf = (row: Json): unknown => row?._id ?? row?.trackerId

const has = (found: Json, wanted: Json): boolean =>
  typeof wanted === 'object' && wanted !== null
    ? typeof found === 'object' && found !== null && Object.keys(wanted).every((key) => has(found[key], wanted[key]))
    : found === wanted
