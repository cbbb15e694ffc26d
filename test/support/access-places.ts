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
  'startAzureSignIn',
  'finishAzureSignIn',
  'exchangeSignIn',
  'loginSecondStep',
  'followShare',
  'downloadExport',
  'getBaseTile',
  'getFollowPage',
  'readOrganizationLogo',
  'readAddonFile',
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
  'getPageAsset',
  'getPageStyle',
]

/** Answer the machine that the service runs on, or the metrics token. */
export const OPERATOR = ['readMetrics', 'readSystem']

/** What every user of an organization may do: to themselves alone. */
export const OWN = [
  'refreshToken',
  'logout',
  'listMyOrganizations',
  'listOwnSessions',
  'readExport',
  'deleteExport',
  'listNotifications',
  'readNotification',
  'readNotifications',
  'endOwnSession',
  'readSecondFactor',
  'beginSecondFactor',
  'confirmSecondFactor',
  'replaceRecoveryCodes',
  'removeSecondFactor',
  'switchOrganization',
  'readOwnUser',
  'amendOwnUser',
  'readOwnPermissions',
]

/** Answer whoever lacks their permission what is their own: nothing, where they have no phone. */
export const OPEN_FOR_OWN = [
  'listTrackers',
  'readTracker',
  'listLivePositions',
  'listLocationHistories',
  'readLocationHistory',
  'listTrips',
  'readTrip',
  'getTraceTile',
]

/** Take the keys of devices and gateways too. */
export const POINTS = [
  'createLocationHistoryBulk',
  ...['Overland', 'OwnTracks', 'Traccar', 'OsmAnd', 'Ttn', 'ChirpStack'].flatMap((protocol) => [
    `store${protocol}Points`,
    `store${protocol}PointsByKey`,
  ]),
  ...['Traccar', 'OsmAnd'].flatMap((protocol) => [`send${protocol}Points`, `send${protocol}PointsByKey`]),
]

/**
 * Parameters of paths. `hub`: the thing has a hub, and is 404 to whoever has another one. `person`: it can be read, and be
 * written by whoever has all hubs of it (403). `organization`: everyone with the permission may. `own`: 404 to everybody else.
 * `bearer`: knowing it stands for permission and hub, within the organization. `credential`: it says who calls, where no bearer does.
 * `none`: it names nothing that anybody has.
 */
export const PARAMETERS: {
  [name: string]: 'hub' | 'person' | 'organization' | 'own' | 'bearer' | 'credential' | 'none'
} = {
  key: 'credential',
  z: 'none',
  x: 'none',
  y: 'none',
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
  serviceAccountId: 'hub',
  roleId: 'organization',
  appIntegrationId: 'organization',
  pluginSettingId: 'organization',
  addonId: 'organization',
  flowId: 'organization',
  taskId: 'hub',
  shareId: 'hub',
  fileId: 'hub',
  scheduleId: 'hub',
  routingResultId: 'hub',
  dataTypeId: 'organization',
  dataId: 'organization',
  name: 'organization',
  geofenceGroupId: 'organization',
  geofenceId: 'organization',
  automationId: 'organization',
  backtestId: 'own',
  importId: 'own',
  exportId: 'own',
  exportConfigId: 'organization',
  sessionId: 'own',
  notificationId: 'own',
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
  dataId: 'dataId',
  flowId: 'flowId',
  taskIds: 'taskId',
  taskId: 'taskId',
  recordId: 'dataId',
  trackerId: 'trackerId',
  vehicleIds: 'vehicleId',
  assigneeIds: 'userId',
  exportConfigId: 'exportConfigId',
}

type Ids = { [name: string]: string }

/** The whole member of a body where more has to stand beside a reference, by its pointer: with that id, and one's own. */
export const MEMBERS: { [pointer: string]: (id: string, own: Ids, path: string) => unknown } = {
  '/permissionDetails/0/dataTypeId': (dataTypeId) => [{ permissionName: 'view/data', dataTypeId, hiddenFields: [] }],
  '/fields/0/dataTypeId': (dataTypeId) => [
    { name: 'link', type: 'reference', dataTypeId },
    { name: 'number', type: 'text' },
    { name: 'kind', type: 'option', options: ['shop', 'restaurant'] },
  ],
  '/steps/0/components/0/dataTypeId': (dataTypeId) => [
    { id: 'one', name: 'One', components: [{ id: 'link', type: 'reference', dataTypeId }] },
  ],
  '/routes/0/vehicleId': (vehicleId) => [{ vehicleId, visits: [] }],
  '/routes/0/userId': (userId, { vehicleId }) => [{ vehicleId, userId, visits: [] }],
  '/routes/0/visits/0/taskId': (taskId, { vehicleId }) => [{ vehicleId, visits: [{ taskId }] }],
  '/unassigned/0/taskId': (taskId) => [{ taskId, reason: 'noRoom' }],
  '/dataSource/dataTypeId': (dataTypeId, { dataId }, path) =>
    path.startsWith('/flow') ? { dataTypeId, mapping: {} } : { dataTypeId, dataId },
  '/dataSource/dataId': (dataId, { dataTypeId }) => ({ dataTypeId, dataId }),
}

/** Ids in bodies that narrow what is found, as filters do: those of others find nothing. */
export const FILTERS: { [member: string]: string } = { trackerIds: 'trackerId' }

/** Ids in bodies that name nothing which somebody else could have, and why. */
export const NO_REFERENCES: { [member: string]: string } = {
  _id: 'the id of what is made: one that is taken is 409 (tried below)',
  organizationId:
    'the organization that a person logs in to: 401 or 404 unless they are in it (test/features/identity)',
}
