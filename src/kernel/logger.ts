/** Structured log lines. Never a secret, a token or a body in `fields`. */
export interface Logger {
  debug(msg: string, fields?: { [name: string]: unknown }): void
  info(msg: string, fields?: { [name: string]: unknown }): void
  warn(msg: string, fields?: { [name: string]: unknown }): void
  error(msg: string, fields?: { [name: string]: unknown }): void
}
