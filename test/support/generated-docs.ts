import { ALARMS, ATTRIBUTES } from '../../src/devices/attributes.ts'
import { FLAGS, variableOf } from '../../src/config-flags.ts'
import { PERMISSIONS, PREDEFINED_ROLES } from '../../src/features/identity/users/predefined-roles.ts'
import { ERRORS } from '../../src/kernel/errors.ts'

/* The parts of docs that are made from the code: scripts/write-docs.mjs writes them, and a test compares both. */

/** docs/errors.md: every failure that a client can see. */
export const errorsPage = (): string => {
  const rows = Object.entries(ERRORS).map(
    ([code, { status, retryable, text }]) => `| \`${code}\` | ${status} | ${retryable ? 'yes' : 'no'} | ${text} |`,
  )
  return `# Errors

Every error body is \`{"status": false, "message", "code", "errors"?: [{"path", "message"}]}\`. \`Retry-After\` says when to try again.

| Code | Status | Same request may succeed later | Meaning |
| - | - | - | - |
${rows.join('\n')}

A request that the parser of uWebSockets.js refuses never reaches Waymark. It is answered with a short HTML page instead of this body, and
its connection is closed: 505 for HTTP/1.0 and for a request line that is none, 400 for \`Transfer-Encoding\` together with
\`Content-Length\` and for chunks whose size is no number, 431 for over 32 KiB or over 100 headers. These pages are compiled into the library.
A header that is folded over lines or ends with a bare line feed gets no answer; its connection is closed after 10 seconds. Everything
else has the body above, 400 for contradicting lengths and 431 for headers over 16 KiB among it.
`
}

/** The table of flags in docs/operations.md. */
export const flagsTable = (): string => {
  const rows = FLAGS.map(
    (flag) =>
      `| \`--${flag.name}\` | \`${variableOf(flag.name)}\` | ${flag.default === '' ? 'none' : `\`${flag.default}\``} | ${flag.meaning} |`,
  )
  return `| Flag | Variable | Default | Meaning |\n| - | - | - | - |\n${rows.join('\n')}\n`
}

/** The table of attributes in docs/devices.md. */
export const attributesTable = (): string => {
  const rows = Object.entries(ATTRIBUTES).map(
    ([name, { type, unit, meaning }]) => `| \`${name}\` | ${type} | ${unit ?? ''} | ${meaning} |`,
  )
  return `| Name | Type | Unit | Meaning |\n| - | - | - | - |\n${rows.join('\n')}\n
Values of \`alarm\`: ${ALARMS.map((alarm) => `\`${alarm}\``).join(', ')}.\n`
}

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
    '`src/features/identity/users/predefined-roles.ts`; a test compares both.',
    '',
    row(['Permission', ...PREDEFINED_ROLES.map(({ name, key }) => `${name} (\`${key}\`)`)]),
    row(['-', ...PREDEFINED_ROLES.map(() => '-')]),
    ...lines,
    '',
  ].join('\n')
}
