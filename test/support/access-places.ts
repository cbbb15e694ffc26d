/**
 * The place that each route has in the walk of `test/stream/access-walk.test.ts`. A route, a parameter or a reference in a
 * body that is added stands here, or the walk fails and says so.
 */

/** Whoever calls them needs no token; ids in their paths and bodies are tried where they are tested themselves. */
export const PUBLIC = [
  'signup',
  'login',
  'acceptInvitation',
  'forgotPassword',
  'resetPassword',
  'verifyEmail',
  'readOrganizationLogo',
  'getInvitationPage',
  'getPasswordPage',
  'getAddressPage',
  'getForgottenPage',
  'getAccountScript',
  'readLiveness',
  'readReadiness',
  'readOpenApi',
  'readAsyncApi',
  'getPage',
  'getPageScript',
  'getPageGeometry',
  'getPageLive',
  'getPageMap',
  'getPageStyle',
  'getMapScript',
  'getMapWorker',
  'getMapStyle',
]

/** Answer the machine that the service runs on, or the metrics token. */
export const OPERATOR = ['readMetrics']

/** What every user of an organization may do: to themselves alone. */
export const OWN = [
  'refreshToken',
  'logout',
  'listMyOrganizations',
  'listOwnSessions',
  'endOwnSession',
  'switchOrganization',
  'readOwnUser',
  'amendOwnUser',
]

/** Take the keys of devices and gateways too. */
export const POINTS = ['createLocationHistoryBulk']

/**
 * Parameters of paths. `hub`: the thing has a hub, and is 404 to whoever has another one. `person`: it can be read, and be
 * written by whoever has all hubs of it (403). `organization`: everyone with the permission may. `own`: 404 to everybody else.
 * `bearer`: knowing it stands for permission and hub, within the organization.
 */
export const PARAMETERS: { [name: string]: 'hub' | 'person' | 'organization' | 'own' | 'bearer' } = {
  hubId: 'hub',
  teamId: 'hub',
  vehicleId: 'hub',
  trackerId: 'hub',
  ingestKeyId: 'hub',
  pointId: 'hub',
  tripId: 'hub',
  runId: 'hub',
  userId: 'person',
  email: 'person',
  roleId: 'organization',
  appIntegrationId: 'organization',
  pluginSettingId: 'organization',
  dataTypeId: 'organization',
  dataId: 'organization',
  name: 'organization',
  geofenceGroupId: 'organization',
  geofenceId: 'organization',
  automationId: 'organization',
  backtestId: 'own',
  sessionId: 'own',
  token: 'bearer',
}

/** Ids in bodies that are those of another record, by the name of the member, and the parameter that names the same. */
export const REFERENCES: { [member: string]: string } = {
  hubId: 'hubId',
  roleId: 'roleId',
  teamId: 'teamId',
  teamIds: 'teamId',
  userId: 'userId',
  userIds: 'userId',
  vehicleId: 'vehicleId',
  geofenceGroupId: 'geofenceGroupId',
  dataTypeId: 'dataTypeId',
}

/** What has to stand beside a reference within a list, and further items of it, by the name of the list. */
export const BESIDE: { [list: string]: [object, ...object[]] } = {
  permissionDetails: [{ permissionName: 'view/data', hiddenFields: [] }],
  fields: [
    { name: 'link', type: 'reference' },
    { name: 'number', type: 'text' },
    { name: 'kind', type: 'option', options: ['shop', 'restaurant'] },
  ],
}

/** Ids in bodies that narrow what is found, as filters do: those of others find nothing. */
export const FILTERS: { [member: string]: string } = { trackerIds: 'trackerId' }

/** Ids in bodies that name nothing which somebody else could have, and why. */
export const NO_REFERENCES: { [member: string]: string } = {
  _id: 'the id of what is made: one that is taken is 409 (tried below)',
  organizationId:
    'the organization that a person logs in to: 401 or 404 unless they are in it (test/features/identity)',
}
