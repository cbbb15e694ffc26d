import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import type { Json } from './service.ts'

export interface ChatAnswer {
  status: number
  headers?: { [name: string]: string }
  text?: string
}

/** Incoming webhooks of a chat on this machine; `answers` says what a path answers to its n-th call, from 0. */
export const openChat = async (
  t: Test,
  answers: (path: string, call: number) => ChatAnswer = () => ({ status: 200 }),
) => {
  const posts: { path: string; body: Json; at: number }[] = []
  const server = createServer((request, response) => {
    const chunks: Buffer[] = []
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => {
      const path = request.url ?? ''
      const call = posts.filter((one) => one.path === path).length
      posts.push({ path, body: JSON.parse(Buffer.concat(chunks).toString()), at: Date.now() })
      const { status, headers, text = 'ok' } = answers(path, call)
      response.writeHead(status, headers).end(text)
    })
  })
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  t.teardown(() => new Promise((closed) => server.close(closed).closeAllConnections()))
  const { port } = server.address() as AddressInfo
  return { url: (path: string) => `http://127.0.0.1:${port}${path}`, posts }
}
