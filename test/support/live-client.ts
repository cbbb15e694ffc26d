import type { Config } from '../../src/config.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import type { LogOrigin } from '../../src/kit/consumers/log-origin.ts'
import { createMetrics } from '../../src/kit/operations/metrics.ts'
import { liveChannel } from '../../src/live/client.ts'
import type { LiveHub } from '../../src/live/hub.ts'
import { liveHub } from '../../src/roles/live.ts'
import { until, type Json } from './service.ts'

type HubServices = Parameters<typeof liveHub>[0]
type Needed = 'log' | 'tables' | 'clock' | 'keyring' | 'logger' | 'checkpoints'

/** A hub of one partition over what a test has; nothing is fed to it yet. */
export const liveHubOver = (own: Pick<HubServices, Needed> & Partial<HubServices>): LiveHub => {
  const services = own as HubServices
  const config = { staleAfterMs: 1, offlineAfterMs: 1 } as Config
  const origin = { logId: 'log', epoch: 0 } as LogOrigin
  return liveHub({ ...services, config, partitions: 1, origin, metrics: createMetrics(), settle: async () => true })
}

/** Somebody who looks, with one subscription that has been answered, and all that they heard since. */
export const watchLive = async (hub: LiveHub, caller: UserCaller, message: object, inRollout = true) => {
  const messages: Json[] = []
  const buffer = { bytes: 0, isStuck: false, closedWith: undefined as number | undefined }
  const socket = {
    address: '',
    isLocal: true,
    send: (text: string): number => {
      messages.push(JSON.parse(text))
      if (buffer.isStuck) buffer.bytes += text.length
      return buffer.bytes
    },
    bufferedBytes: () => buffer.bytes,
    close: (code: number) => void (buffer.closedWith = code),
  }
  const connection = liveChannel(hub, () => inRollout).open(socket, caller)
  const say = (sent: object): void =>
    connection.message(new Uint8Array(Buffer.from(JSON.stringify(sent))).buffer, false)
  say({ type: 'subscribe', id: 's', ...message })
  await until('an answer', () => messages.some(({ type }) => type === 'snapshot' || type === 'error'))
  const events = (): Json[] => messages.filter(({ type }) => type === 'event')
  return { connection, messages, buffer, say, events }
}

export type LiveWatcher = Awaited<ReturnType<typeof watchLive>>
