import type { RedisConnection } from './connection.ts'

/** Names of processes' connections, by which others see them go: a kernel closes them when its process dies. */
export class ShownNames {
  private readonly connection: RedisConnection
  private readonly prefix: string

  constructor(connection: RedisConnection, prefix: string) {
    this.connection = connection
    this.prefix = `${prefix}:`
  }

  async show(name: string): Promise<void> {
    await this.connection.everywhere(['CLIENT', 'SETNAME', this.prefix + name])
  }

  /** In a cluster: on any of its masters. */
  async all(): Promise<ReadonlySet<string>> {
    const lists = await this.connection.everywhere(['CLIENT', 'LIST', 'TYPE', 'NORMAL'])
    const names = lists.flatMap((list) => [...String(list).matchAll(/ name=(\S+)/g)].map(([, name]) => name))
    return new Set(names.filter((name) => name.startsWith(this.prefix)).map((name) => name.slice(this.prefix.length)))
  }
}
