import { bool, newName, oneOf, secret, text, withDefault } from '../../kernel/schema.ts'
import type { Route } from '../../kit/http/route.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import { defineResource } from '../../kit/resource/resource.ts'

/** A tenant or an application by its id or a domain. Names for any tenant are excluded, in any case. */
const ANY_TENANT = ['common', 'organizations', 'consumers'].map((name) =>
  name.replace(/[a-z]/g, (letter) => `[${letter}${letter.toUpperCase()}]`),
)
const DIRECTORY_ID = `^(?!(${ANY_TENANT.join('|')})\\.*$)[A-Za-z0-9][A-Za-z0-9.-]*$`

/** An external application that users of the organization sign in with. */
export const appIntegration = defineResource({
  noun: 'appIntegration',
  plural: 'appIntegrations',
  paths: { one: '/app-integration', many: '/app-integrations' },
  tag: 'App integrations',
  fields: {
    type: withDefault(oneOf('azure'), 'azure'),
    name: newName({ max: 100 }),
    tenantId: text({ max: 100, pattern: DIRECTORY_ID }),
    clientId: text({ max: 100, pattern: DIRECTORY_ID }),
    clientSecret: secret({ max: 500 }),
    isActive: withDefault(bool(), true),
  },
  secrets: { writeOnly: ['clientSecret'] },
  permissions: { view: 'view/app-integration', edit: 'edit/app-integration' },
  table: {
    version: 2,
    indexes: { equality: ['name', 'type', 'tenantId', 'isActive'], range: ['name'], text: ['name'] },
  },
  example: {
    type: 'azure',
    name: 'Company sign-in',
    tenantId: '72f988bf-86f1-41af-91ab-2d7cd011db47',
    clientId: '6731de76-14a6-49ae-97bc-6eba6914391e',
    clientSecret: 'kept encrypted and never answered',
    isActive: true,
  },
})

/** Both forms of an update are one operation with two names. */
export const appIntegrationRoutes = (services: ResourceServices): Route[] =>
  appIntegration.routes(services).map((route) => (route.method === 'PUT' ? { ...route, aliases: [UPDATE] } : route))

/** An active integration, with its secret, for sign-ins. */
export const activeIntegration = async (services: ResourceServices, appIntegrationId: string) => {
  const writer = appIntegration.writer(services)
  const { state } = await writer.load(appIntegrationId)
  if (state.status !== 'live' || state.values.isActive !== true) return undefined
  return {
    organizationId: state.organizationId,
    tenantId: String(state.values.tenantId),
    clientId: String(state.values.clientId),
    clientSecret: String(writer.open(state, 'clientSecret')),
  }
}

const UPDATE: NonNullable<Route['aliases']>[number] = {
  method: 'POST',
  path: '/app-integration/{appIntegrationId}',
  operationId: 'updateAppIntegration',
}
