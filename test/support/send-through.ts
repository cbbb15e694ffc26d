import { setTimeout as pause } from 'node:timers/promises'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import type { Fix } from '../../src/cli/trace-file.ts'

export interface Sender {
  /** Fixes that are acknowledged. */
  readonly acknowledged: number
  readonly isOver: boolean
  ended: Promise<void>
  stop(): void
}

const FRAME = 20

/** A device that lasts: sends frame after frame, connects again whenever it is cut off, and sends anew what was not acknowledged. */
export const sendThrough = (service: () => { url: string }, key: string, fixes: readonly Fix[]): Sender => {
  let isStopped = false
  const sender = { acknowledged: 0, isOver: false, ended: Promise.resolve(), stop: () => void (isStopped = true) }
  const run = async (): Promise<void> => {
    while (sender.acknowledged < fixes.length && !isStopped) {
      try {
        const gateway = await IngestClient.connect(service().url, key)
        while (sender.acknowledged < fixes.length) {
          await gateway.send(fixes.slice(sender.acknowledged, sender.acknowledged + FRAME))
          await gateway.drained()
          sender.acknowledged = Math.min(fixes.length, sender.acknowledged + FRAME)
        }
        gateway.close()
      } catch (error) {
        if (!/closed the connection|cannot connect/.test(String(error))) throw error
        await pause(100)
      }
    }
  }
  sender.ended = run().finally(() => (sender.isOver = true))
  sender.ended.catch(() => undefined)
  return sender
}
