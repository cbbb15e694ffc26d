import { FLAGS } from '../config-flags.ts'
import { type Config, readConfig } from '../config.ts'

/** The flags of the service as options of another command's line. */
export const flagOptions = () =>
  Object.fromEntries(FLAGS.map(({ name, boolean }) => [name, { type: boolean ? 'boolean' : 'string' } as const]))

/** The configuration that the service would have with them. @throws ConfigError */
export const configOfFlags = (values: { [name: string]: unknown }): Config =>
  readConfig(
    Object.entries(values).flatMap(([name, value]) =>
      value === undefined ? [] : [`--${name}${value === true ? '' : `=${value}`}`],
    ),
  )
