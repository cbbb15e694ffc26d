import { PERMISSIONS, PREDEFINED_ROLES } from './predefined-roles.ts'

/** docs/roles.md, made from the table of predefined roles. */
export const rolesDocument = (): string => {
  const row = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`
  const lines = PERMISSIONS.map((permission) =>
    row([
      `\`${permission}\``,
      ...PREDEFINED_ROLES.map(({ permissions }) => (permissions.includes(permission) ? 'yes' : '')),
    ]),
  )
  return [
    '# Predefined roles',
    '',
    'Every organization begins with these four. An administrator may edit the permissions of all but the owner; names and',
    'existence are fixed. Owner and admin see every hub, everybody else the hubs of their hub list. This page is made from',
    '`src/features/identity/predefined-roles.ts`; a test compares both.',
    '',
    row(['Permission', ...PREDEFINED_ROLES.map(({ name, key }) => `${name} (\`${key}\`)`)]),
    row(['-', ...PREDEFINED_ROLES.map(() => '-')]),
    ...lines,
    '',
  ].join('\n')
}
