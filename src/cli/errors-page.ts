import { ERRORS } from '../kernel/errors.ts'

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
`
}
