import type { Test } from 'tap'

/** A fresh folder of the test, deleted after its teardowns: `t.testdir()` before the first of them would be deleted before, under what is still open. */
export const folderOf = (t: Test): string => {
  t.teardown(() => undefined)
  return t.testdir()
}
