import { jsonOf, objectOf } from '../values.ts'

/**
 * Points in the form of the service's own API: `{"points": […]}`, a list, or one point. Invalid JSON is one point that
 * the store refuses, so that it counts. The sender's name is known: names in points are left out.
 */
export const readOwnPoints = (payload: Uint8Array): object[] => {
  const body = jsonOf(payload)
  const { points } = objectOf(body) ?? {}
  const list = Array.isArray(points) ? points : Array.isArray(body) ? body : [body]
  return list.map((point) => {
    const { trackerId: _, externalId: __, ...own } = objectOf(point) ?? {}
    return own
  })
}
