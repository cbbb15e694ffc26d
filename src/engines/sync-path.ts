import { open } from 'node:fs/promises'

/** Resolves once a file's bytes, or the names in a folder, are on the disk. */
export const syncPath = async (path: string): Promise<void> => {
  const handle = await open(path, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
