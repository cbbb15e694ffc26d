import { TcpProxy } from '../../test/support/tcp-proxy.ts'
import type { EngineUrls } from './stand-ins.ts'

/** Ways to the servers for one process alone, which fall silent together. */
export class OwnWays {
  readonly urls: EngineUrls
  private readonly proxies: readonly TcpProxy[]

  private constructor(urls: EngineUrls, proxies: readonly TcpProxy[]) {
    this.urls = urls
    this.proxies = proxies
  }

  static async open({ log, tables, history }: EngineUrls): Promise<OwnWays> {
    const proxies: TcpProxy[] = []
    const through = async (text: string): Promise<string> => {
      const { port } = new URL(text)
      const proxy = await TcpProxy.open(Number(port))
      proxies.push(proxy)
      return text.replace(`:${port}`, `:${proxy.port}`)
    }
    const urls = { log: await through(log), tables: await through(tables), history: await through(history) }
    return new OwnWays(urls, proxies)
  }

  silence(): void {
    for (const proxy of this.proxies) proxy.silence()
  }

  async close(): Promise<void> {
    await Promise.all(this.proxies.map((proxy) => proxy.close()))
  }
}
