import { ByteQueue } from './byte-queue.ts'
import { datagramSaid, type DeviceStream, NotThisProtocol, type Said, type StreamProtocol } from './stream.ts'

const MESSAGE_BYTES_MAX = 4096
/** Noise between two messages beyond which a port receives another protocol. */
const NOISE_BYTES_MAX = 4096

/** Messages of text that begin and end with a character of their own. */
export interface TextForm {
  begin: string
  /** End of the message at the beginning of the text: the place after its last character, 0 while it is incomplete. */
  endOf(text: string): number
  /** Undefined for one without content, which is not answered. */
  read(message: string): Said | undefined
}

class TextStream implements DeviceStream {
  private readonly queue = new ByteQueue()
  private readonly form: TextForm
  private noiseBytes = 0

  constructor(form: TextForm) {
    this.form = form
  }

  push(chunk: Uint8Array, _now: number, said: Said[] = []): Said[] {
    this.queue.push(chunk)
    while (this.queue.length > 0) {
      const text = this.queue.peek().toString('latin1', 0, MESSAGE_BYTES_MAX)
      const begin = text.indexOf(this.form.begin)
      if (begin !== 0) {
        this.skipNoise(begin < 0 ? text.length : begin)
        continue
      }
      const end = this.form.endOf(text)
      if (end === 0 && text.length === MESSAGE_BYTES_MAX) throw new NotThisProtocol('a message has no end')
      if (end === 0) break
      const message = this.form.read(text.slice(0, end))
      if (message === undefined) {
        this.skipNoise(end)
        continue
      }
      this.queue.skip(end)
      this.noiseBytes = 0
      said.push(message)
    }
    return said
  }

  /** Mostly line ends between messages, and messages without content. */
  private skipNoise(bytes: number): void {
    this.queue.skip(bytes)
    this.noiseBytes += bytes
    if (this.noiseBytes > NOISE_BYTES_MAX) throw new NotThisProtocol('this is another protocol')
  }
}

export const textProtocol = (form: TextForm): StreamProtocol => ({
  open: () => new TextStream(form),
  readDatagram: (datagram, now) => datagramSaid(new TextStream(form), datagram, now),
})
