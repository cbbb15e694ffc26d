import { createServer } from 'node:http'
import { Webhook } from 'standardwebhooks'
import type { Test } from 'tap'

export interface Delivery {
  id: string
  // biome-ignore lint/suspicious/noExplicitAny: the body of any event
  body: any
}

export interface Receiver {
  url: string
  /** Secret by automation: deliveries of other automations are bad. */
  secrets: Map<string, string>
  deliveries: Delivery[]
  /** Deliveries whose signature the reference library refuses. */
  bad: string[]
}

/** A webhook receiver on this machine that verifies each delivery with the reference library of Standard Webhooks. */
export const openReceiver = async (t: Test): Promise<Receiver> => {
  const receiver: Receiver = { url: '', secrets: new Map(), deliveries: [], bad: [] }
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString()
      const id = String(request.headers['webhook-id'])
      const body = JSON.parse(text)
      try {
        new Webhook(receiver.secrets.get(body.data.automationId) ?? '').verify(
          text,
          request.headers as Record<string, string>,
        )
      } catch (error) {
        receiver.bad.push(`${id}: ${error}`)
      }
      receiver.deliveries.push({ id, body })
      response.writeHead(204).end()
    })
  })
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
  receiver.url = `http://127.0.0.1:${(server.address() as { port: number }).port}/hook`
  return receiver
}
