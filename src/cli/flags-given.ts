import { FLAGS } from '../config-flags.ts'
import { type Config, readConfig } from '../config.ts'

/** Flags of the service as options of another command. */
export const flagOptions = () =>
  Object.fromEntries(FLAGS.map(({ name, boolean }) => [name, { type: boolean ? 'boolean' : 'string' } as const]))

/** The configuration of a service with these flags. @throws ConfigError */
export const configOfFlags = (values: { [name: string]: unknown }): Config =>
  readConfig(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}${value === true ? '' : `=${value}`}`],
    ),
  )
