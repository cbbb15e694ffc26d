import { openedBy, type Route } from '../kit/http/route.ts'

const ACCESS: { [access in Exclude<Route['access'], object>]: string } = {
  public: 'Needs no token.',
  user: 'Needs no permission: any signed-in user of the organization may call it.',
  points: 'Needs no permission: a user, a device key or an ingest key may call it.',
  operator: 'Needs no permission: the metrics token where one is set, otherwise it answers on loopback only.',
}

/** Callers that a route admits, in a sentence. */
export const accessText = ({ access, isPersonal }: Pick<Route, 'access' | 'isPersonal'>): string => {
  const permissions = openedBy(access).map((one) => `\`${one}\``)
  const own = typeof access !== 'string' && access.own === true ? ' Without it you get what is your own.' : ''
  const allowed =
    typeof access === 'string' ? ACCESS[access] : `Needs the permission ${permissions.join(' or ')}.${own}`
  return isPersonal === true ? `${allowed} Not for service accounts.` : allowed
}

/** The same for OpenAPI: one of them is enough. */
export const securityOf = ({ access }: Pick<Route, 'access'>): { bearer: string[] }[] => {
  if (access === 'public') return []
  const permissions = openedBy(access)
  return permissions.length === 0 ? [{ bearer: [] }] : permissions.map((permission) => ({ bearer: [permission] }))
}
