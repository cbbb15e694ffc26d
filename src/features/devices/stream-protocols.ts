import { gt06 } from '../../devices/gt06/stream.ts'
import { h02 } from '../../devices/h02/stream.ts'
import { queclink } from '../../devices/queclink/stream.ts'
import type { DeviceProtocol, StreamProtocol } from '../../devices/stream.ts'
import { teltonika } from '../../devices/teltonika/stream.ts'
import { tk103 } from '../../devices/tk103/stream.ts'

export const STREAM_PROTOCOLS: { readonly [name in DeviceProtocol]: StreamProtocol } = {
  teltonika,
  gt06,
  h02,
  queclink,
  tk103,
}
