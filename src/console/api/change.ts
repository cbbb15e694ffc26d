// Changes and deletes. Where an answer was lost, what stands tells whether the request was carried out.
import { ApiError, ask, get, type Json } from './client.ts'

/** Changes that may have been carried out although no answer came, by path. */
const unanswered = new Map<string, Json[]>()

/** @throws ApiError */
export const patch = async (path: string, body: Json): Promise<Json> => {
  const lost = unanswered.get(path) ?? []
  try {
    const answer = await (await ask('PATCH', path, { body })).json()
    unanswered.delete(path)
    return answer
  } catch (error) {
    if (isLost(error)) unanswered.set(path, [...lost, body])
    else if (!isStale(error) || lost.length === 0) throw error
    const stands = await get(path).catch(() => {
      throw error
    })
    if (holds(stands.data, body)) {
      unanswered.delete(path)
      return stands
    }
    // What stands is an earlier change of one's own: it is no other's that this one would undo.
    if (!isStale(error) || !lost.some((one) => holds(stands.data, one))) throw error
    unanswered.delete(path)
    return patch(path, { ...body, version: stands.data.version })
  }
}

/** What is no longer there counts as deleted: an earlier answer may have been lost. @throws ApiError */
export const remove = async (path: string): Promise<void> => {
  try {
    await ask('DELETE', path)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 404) throw error
  }
}

/** Whether no answer came, so the request may have been carried out. */
export const isLost = (error: unknown): boolean => error instanceof ApiError && error.status === 0

const isStale = (error: unknown): boolean => error instanceof ApiError && error.code === 'stale_version'

/** Whether what stands has each value that was sent; null removes one. */
const holds = (stands: Json, sent: Json): boolean => {
  if (sent === null || typeof sent !== 'object') return (stands ?? null) === sent
  if (Array.isArray(sent) && stands?.length !== sent.length) return false
  return Object.entries(sent).every(([name, value]) => name === 'version' || holds(stands?.[name], value))
}
