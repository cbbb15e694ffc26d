import { pino, stdTimeFunctions } from 'pino'
import type { Logger } from '../../kernel/logger.ts'

/** Members that never reach a log line, wherever they stand. */
const SECRET = [
  'token',
  'password',
  'secret',
  'deviceKey',
  'key',
  'authorization',
  '*.token',
  '*.password',
  '*.secret',
  '*.deviceKey',
  '*.key',
  '*.authorization',
]

/** JSON lines on stdout, `{"level":"info","time":…,"msg":…}`. `open` lists members that may be shown (demo login). */
export const createLogger = (
  level: 'debug' | 'info' | 'warn' | 'silent' = 'info',
  open: readonly string[] = [],
): Logger => {
  const logger = pino({
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
    redact: { paths: SECRET.filter((path) => !open.includes(path)), censor: '[hidden]' },
  })
  const at =
    (name: 'debug' | 'info' | 'warn' | 'error') =>
    (msg: string, fields?: { [name: string]: unknown }): void =>
      logger[name](fields ?? {}, msg)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}
