import type { UserCaller } from '../../../kernel/caller.ts'

export type RoleKey = NonNullable<UserCaller['roleKey']>

/** Subjects with a `view` and an `edit` permission, each with its group in role editors. */
const SUBJECTS = {
  organization: 'Organization',
  user: 'People',
  role: 'People',
  hub: 'Places',
  team: 'People',
  vehicle: 'Fleet',
  tracker: 'Fleet',
  'location-history': 'Fleet',
  geofence: 'Places',
  automation: 'Automation',
  'data-type': 'Data',
  data: 'Data',
  flow: 'Tasks',
  task: 'Tasks',
  schedule: 'Tasks',
  routing: 'Tasks',
  'export-config': 'Import and export',
  'app-integration': 'Organization',
  'plugin-setting': 'Organization',
  addon: 'Organization',
} as const

type Subject = keyof typeof SUBJECTS

/** Permissions besides those pairs, with their groups. */
const FURTHER = {
  'create/organization': 'Organization',
  'import/data': 'Import and export',
  'export/task': 'Import and export',
  'view/audit-log': 'Organization',
  'view/all-hubs': 'Places',
  'dispatch/task': 'Tasks',
} as const

const inTitle = (name: string): string =>
  name
    .split(/[/-]/)
    .map((word) => word[0].toUpperCase() + word.slice(1))
    .join(' ')

/** All permissions, as `GET /permissions` answers them. */
export const PERMISSION_LIST: readonly { name: string; group: string; title: string }[] = [
  ...Object.entries(FURTHER),
  ...Object.entries(SUBJECTS).flatMap(([subject, group]) => [
    [`view/${subject}`, group] as const,
    [`edit/${subject}`, group] as const,
  ]),
].map(([name, group]) => ({ name, group, title: inTitle(name) }))

export const PERMISSIONS: readonly string[] = PERMISSION_LIST.map(({ name }) => name)

const only = (action: 'view' | 'edit', ...subjects: Subject[]): string[] =>
  subjects.map((subject) => `${action}/${subject}`)

export interface PredefinedRole {
  key: RoleKey
  name: string
  permissions: readonly string[]
}

/** Roles of every new organization. docs/roles.md shows this table and a test compares both. */
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
