import { createHash } from 'node:crypto'
import type { FileStore } from '../../engines/file-store.ts'

/** Copies every file of a store into another one and reads it back there; returns their number. */
export const copyFiles = async (from: FileStore, to: FileStore): Promise<number> => {
  let files = 0
  for await (const { key, bytes } of from.list('')) {
    const wanted = await hashOf(from, key)
    if (wanted === undefined) continue // deleted meanwhile
    if ((await hashOf(to, key)) !== wanted) {
      const found = await from.get(key)
      if (found !== undefined) await to.put(key, found.stream, bytes)
      if ((await hashOf(to, key)) !== wanted) throw new Error(`the copy of the file ${key} differs`)
    }
    files++
  }
  return files
}

const hashOf = async (store: FileStore, key: string): Promise<string | undefined> => {
  const found = await store.get(key)
  if (found === undefined) return undefined
  const hash = createHash('sha256')
  for await (const piece of found.stream) hash.update(piece)
  return hash.digest('hex')
}
