import type { Test } from 'tap'

const folders = new WeakMap<Test, string>()

/**
 * The folder of a test, the same at every call, deleted after its teardowns: `t.testdir()` before the first of them would be
 * deleted before, under what is still open, and a second `t.testdir()` empties the folder under what the first one holds.
 */
export const folderOf = (t: Test): string => {
  const known = folders.get(t)
  if (known !== undefined) return known
  t.teardown(() => undefined)
  const folder = t.testdir()
  folders.set(t, folder)
  return folder
}
