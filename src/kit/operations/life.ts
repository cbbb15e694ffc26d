import { existsSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { makeFolder } from '../../engines/make-folder.ts'

/**
 * One run of a process, from its start to its end. A node is its data folder, which one process at a time owns: work of
 * an earlier life of a node is done by nobody any more.
 */
export interface Life {
  node: string
  /** Differs at each start of the node. */
  id: string
}

/** Whether the process of `then` was this node before its last start. */
export const isEarlier = (then: Life, now: Life): boolean => then.node === now.node && then.id !== now.id

const NODE_FILE = 'node-id'

/** Begins a life on a data folder that this process has for itself. */
export const beginLife = (dataPath: string, newId: () => string): Life => {
  makeFolder(dataPath)
  const file = join(dataPath, NODE_FILE)
  if (!existsSync(file)) {
    const made = `${file}.new`
    writeFileSync(made, newId())
    // A link shows the whole file at once.
    linkSync(made, file)
    rmSync(made)
  }
  return { node: readFileSync(file, 'utf8').trim(), id: newId() }
}
