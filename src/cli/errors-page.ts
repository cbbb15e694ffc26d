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

A request that the parser of uWebSockets.js refuses never reaches Waymark. It is answered with a short HTML page instead of this body, and
its connection is closed: 505 for HTTP/1.0 and for a request line that is none, 400 for \`Transfer-Encoding\` together with
\`Content-Length\` and for chunks whose size is no number, 431 for over 32 KiB or over 100 headers. These pages are compiled into the library.
A header that is folded over lines or ends with a bare line feed gets no answer; its connection is closed after 10 seconds. Everything
else has the body above, 400 for contradicting lengths and 431 for headers over 16 KiB among it.
`
}
