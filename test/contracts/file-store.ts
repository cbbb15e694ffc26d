import { test, type Test } from 'tap'
import type { FileStore } from '../../src/engines/file-store.ts'
import { seeded } from '../support/random.ts'

export interface OpenFiles {
  store: FileStore
  /** Takes the engine away, or what it stands on; answers what brings it back. */
  breakIt(): Promise<() => Promise<void>>
}

const MIB = 1024 * 1024

const bytesOf = (seed: number, length: number): Buffer => {
  const random = seeded(seed)
  return Buffer.from(Uint8Array.from({ length }, () => Math.floor(random() * 256)))
}

async function* inPieces(bytes: Buffer, size = 64 * 1024): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size)
}

const put = (store: FileStore, key: string, bytes: Buffer, bytesMax = 64 * MIB): Promise<number> =>
  store.put(key, inPieces(bytes), bytesMax)

const read = async (store: FileStore, ...asked: Parameters<FileStore['get']>) => {
  const found = await store.get(...asked)
  if (found === undefined) return undefined
  const pieces: Uint8Array[] = []
  for await (const piece of found.stream) pieces.push(piece)
  return { size: found.bytes, bytes: Buffer.concat(pieces) }
}

const keysBelow = async (store: FileStore, prefix: string): Promise<string[]> => {
  const keys: string[] = []
  for await (const { key } of store.list(prefix)) keys.push(key)
  return keys.sort()
}

/** The promises of `FileStore`, asked of one engine. */
export const fileStoreContract = (name: string, { open }: { open(t: Test): Promise<OpenFiles> }): void => {
  test(`${name}: a file comes back as it was put, whole and in ranges`, async (t) => {
    const { store } = await open(t)
    for (const [i, length] of [0, 1, 70_000, 5 * MIB, 11 * MIB + 3].entries()) {
      const bytes = bytesOf(i + 1, length)
      t.equal(await put(store, `some/file-${i}.bin`, bytes), length)
      const found = await read(store, `some/file-${i}.bin`)
      t.equal(found?.size, length)
      t.ok(found?.bytes.equals(bytes), `${length} bytes`)
    }
    const bytes = bytesOf(3, 70_000)
    for (const [from, to] of [
      [0, 9],
      [10, 10],
      [65_530, 65_600],
      [69_999, 80_000],
      [70_000, 70_001],
    ] as const) {
      const part = await read(store, 'some/file-2.bin', { from, to })
      t.equal(part?.size, 70_000)
      t.ok(part?.bytes.equals(bytes.subarray(from, to + 1)), `${from} to ${to}`)
    }
    t.equal(await store.get('some/nothing'), undefined)
    t.equal(await store.get('some/nothing', { from: 0, to: 1 }), undefined)
    const early = await store.get('some/file-4.bin')
    for await (const _piece of early?.stream ?? []) break
    t.pass('a reader may leave early')
  })

  test(`${name}: a file that does not come to its end leaves what was there before, or nothing`, async (t) => {
    const { store } = await open(t)
    await put(store, 'a/kept', Buffer.from('before'))
    for (const key of ['a/kept', 'a/new']) {
      await t.rejects(put(store, key, bytesOf(1, 7 * MIB), 6 * MIB), { code: 'too_large' }, key)
      await t.rejects(put(store, key, Buffer.from('12345'), 4), { code: 'too_large' }, key)
      async function* broken(): AsyncGenerator<Uint8Array> {
        yield bytesOf(2, 6 * MIB)
        throw new Error('the client is gone')
      }
      await t.rejects(store.put(key, broken(), 64 * MIB), { message: 'the client is gone' }, key)
    }
    t.same(await keysBelow(store, ''), ['a/kept'])
    t.equal((await read(store, 'a/kept'))?.bytes.toString(), 'before')
    await put(store, 'a/kept', Buffer.from('after'))
    t.equal((await read(store, 'a/kept'))?.bytes.toString(), 'after', 'putting again replaces it')
  })

  test(`${name}: files are listed by prefix and deleted`, async (t) => {
    const { store } = await open(t)
    const keys = ['b/1', 'b/2/x.y', 'b/2-z', 'c', 'bb/1']
    await Promise.all(keys.map((key) => put(store, key, Buffer.from(key))))
    t.same(await keysBelow(store, ''), [...keys].sort())
    t.same(await keysBelow(store, 'b/'), ['b/1', 'b/2-z', 'b/2/x.y'])
    t.same(await keysBelow(store, 'b/2'), ['b/2-z', 'b/2/x.y'])
    t.same(await keysBelow(store, 'none/'), [])
    for await (const { key, bytes, putAt } of store.list('c')) {
      t.same([key, bytes], ['c', 1])
      t.ok(Math.abs(Date.now() - putAt) < 3_600_000, 'when it was put')
    }
    await store.delete('b/2/x.y')
    await store.delete('b/2/x.y')
    await store.delete('never/there')
    t.equal(await store.get('b/2/x.y'), undefined)
    t.same(await keysBelow(store, 'b/'), ['b/1', 'b/2-z'])
  })

  test(`${name}: what is no key never becomes a path`, async (t) => {
    const { store } = await open(t)
    for (const key of [
      '',
      '/a',
      'a/',
      '../a',
      'a/../b',
      'a//b',
      '.incoming/x',
      'a/.x',
      'a\\b',
      'a\0',
      'ä',
      'x'.repeat(200),
    ]) {
      await t.rejects(async () => put(store, key, Buffer.from('x')), Error, JSON.stringify(key))
      await t.rejects(async () => store.get(key), Error)
      await t.rejects(async () => store.delete(key), Error)
    }
  })

  test(`${name}: an engine that is gone fails as such, and works again when it is back`, async (t) => {
    const { store, breakIt } = await open(t)
    await put(store, 'a', Buffer.from('a'))
    const mend = await breakIt()
    await t.rejects(store.ping(), { code: 'engine_down' })
    await t.rejects(put(store, 'b', Buffer.from('b')), { code: 'engine_down' })
    await mend()
    await store.ping()
    await put(store, 'b', Buffer.from('b'))
    t.equal((await read(store, 'b'))?.bytes.toString(), 'b')
  })
}
