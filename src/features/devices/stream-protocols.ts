import { gt06 } from '../../devices/gt06/stream.ts'
import { h02 } from '../../devices/h02/stream.ts'
import type { StreamProtocol } from '../../devices/stream.ts'
import { teltonika } from '../../devices/teltonika/stream.ts'

/** Protocols of hardware, by the name that `--devices` takes. */
export const STREAM_PROTOCOLS: { readonly [name in 'teltonika' | 'gt06' | 'h02']: StreamProtocol } = {
  teltonika,
  gt06,
  h02,
}
