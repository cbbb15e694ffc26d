import type { UserCaller } from '../../kernel/caller.ts'

export type RoleKey = NonNullable<UserCaller['roleKey']>

/** Things that have a `view` and an `edit` permission. */
const SUBJECTS = [
  'organization',
  'user',
  'role',
  'hub',
  'team',
  'vehicle',
  'tracker',
  'location-history',
  'geofence',
  'automation',
  'data-type',
  'data',
  'flow',
  'task',
  'schedule',
  'routing',
  'export-config',
  'app-integration',
  'plugin-setting',
  'addon',
] as const

/** Every permission there is. */
export const PERMISSIONS: readonly string[] = [
  'create/organization',
  'import/data',
  'export/task',
  'view/audit-log',
  'view/all-hubs',
  'dispatch/task',
  ...SUBJECTS.flatMap((subject) => [`view/${subject}`, `edit/${subject}`]),
]

const only = (action: 'view' | 'edit', ...subjects: (typeof SUBJECTS)[number][]): string[] =>
  subjects.map((subject) => `${action}/${subject}`)

export interface PredefinedRole {
  key: RoleKey
  name: string
  permissions: readonly string[]
}

/** The roles that every organization has from its beginning. docs/roles.md shows this table and a test compares both. */
export const PREDEFINED_ROLES: readonly PredefinedRole[] = [
  { key: 'owner', name: 'Owner', permissions: PERMISSIONS },
  { key: 'admin', name: 'Admin', permissions: PERMISSIONS },
  {
    key: 'planner',
    name: 'Planner',
    permissions: [
      'import/data',
      'export/task',
      'dispatch/task',
      ...only(
        'view',
        'organization',
        'user',
        'role',
        'hub',
        'team',
        'vehicle',
        'tracker',
        'location-history',
        'geofence',
        'automation',
      ),
      ...only('view', 'data-type', 'data', 'flow', 'task', 'schedule', 'routing', 'export-config'),
      ...only('edit', 'team', 'vehicle', 'data', 'task', 'schedule', 'routing', 'export-config'),
    ],
  },
  {
    key: 'fieldUser',
    name: 'Field User',
    permissions: [
      ...only('view', 'organization', 'user', 'hub', 'team', 'vehicle', 'data-type', 'data', 'flow', 'task'),
      ...only('edit', 'task'),
    ],
  },
]
