import { assertKey, type FileStore, fileTooLarge } from '../../src/engines/file-store.ts'
import type { HttpCall, HttpCaller, HttpOutcome } from '../../src/engines/http-caller.ts'
import type { Mailer } from '../../src/engines/mailer.ts'
import type { Stoppable, Timeline } from './timeline.ts'

const PUT_MS_MAX = 4_000

/** Files in memory, as one process has them: storing one takes a while. */
export const openMemoryFiles = (files: Map<string, Uint8Array>, timeline: Timeline, host: Stoppable): FileStore => ({
  put: async (key, source, bytesMax) => {
    assertKey(key)
    const parts: Uint8Array[] = []
    for await (const part of source) parts.push(part)
    const whole = Buffer.concat(parts)
    if (whole.byteLength > bytesMax) throw fileTooLarge(bytesMax)
    await new Promise<void>((resolve) => timeline.after(timeline.between(0, PUT_MS_MAX), resolve, host))
    files.set(key, whole)
    return whole.byteLength
  },
  get: async (key) => {
    const bytes = files.get(key)
    return (
      bytes && {
        bytes: bytes.byteLength,
        stream: (async function* () {
          yield bytes
        })(),
      }
    )
  },
  delete: async (key) => void files.delete(key),
  list: async function* (prefix) {
    for (const [key, { byteLength: bytes }] of files) if (key.startsWith(prefix)) yield { key, bytes, putAt: 0 }
  },
  ping: async () => undefined,
  close: async () => undefined,
})

export const noMailer: Mailer = {
  send: async () => ({ kind: 'sent' }),
  check: async () => undefined,
  close: async () => undefined,
}

/** What a body says of its subject. */
interface Told {
  transitionId?: string
  task?: { _id: string }
  trip?: { _id: string }
}

/** What a receiver of webhooks was sent, by `webhook-id`, with the transitions or tasks that the bodies name. */
export class Receiver {
  readonly deliveries = new Map<string, { subjects: Set<string>; count: number; answered: number }>()
  /** Part of the calls that fail, before or after they were taken. */
  failing = 0.05
  private readonly timeline: Timeline

  constructor(timeline: Timeline) {
    this.timeline = timeline
  }

  /** The port, as one process has it. */
  callerOf(host: Stoppable): HttpCaller {
    const { timeline } = this
    const post = (call: HttpCall): Promise<HttpOutcome> =>
      new Promise((resolve) => {
        const end = (outcome: HttpOutcome): void =>
          void timeline.after(timeline.between(1, 40), () => resolve(outcome), host)
        const fails = timeline.chance(this.failing)
          ? timeline.pick(['never', 'refused', 'unheard'] as const)
          : undefined
        if (fails === 'never') return end({ kind: 'failed', error: 'no connection' })
        timeline.after(timeline.between(1, 40), () => {
          if (fails === 'refused') return end({ kind: 'answered', statusCode: 503, answer: '' })
          this.take(call, fails === undefined)
          if (fails === 'unheard') return end({ kind: 'failed', error: 'no answer' })
          end({ kind: 'answered', statusCode: 204, answer: '' })
        })
      })
    const fetch = () => Promise.reject(new Error('nothing is fetched here'))
    return { post, fetch, refusal: () => undefined, close: async () => undefined }
  }

  private take({ headers, body }: HttpCall, isAnswered: boolean): void {
    const id = headers[headers.findIndex((header) => header.toLowerCase() === 'webhook-id') + 1]
    const known = this.deliveries.get(id) ?? { subjects: new Set(), count: 0, answered: 0 }
    const { type, data } = JSON.parse(body) as { type: string; data: Told }
    const subject = data.trip === undefined ? (data.transitionId ?? data.task?._id) : `${type} ${data.trip._id}`
    known.subjects.add(String(subject))
    known.count++
    if (isAnswered) known.answered++
    this.deliveries.set(id, known)
  }
}
