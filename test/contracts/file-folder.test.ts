import { mkdir, readdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'tap'
import { openFileFolder } from '../../src/engines/file-folder/file-folder.ts'
import { folderOf } from '../support/folder-of.ts'
import { fileStoreContract } from './file-store.ts'

fileStoreContract('file-folder', {
  open: async (t) => {
    const path = join(folderOf(t), 'files')
    const store = await openFileFolder(path)
    return {
      store,
      breakIt: async () => {
        await rename(path, `${path}-away`)
        return () => rename(`${path}-away`, path)
      },
    }
  },
})

test('what a process left unfinished is thrown away at the next start', async (t) => {
  const path = join(folderOf(t), 'files')
  await mkdir(join(path, '.incoming'), { recursive: true })
  await writeFile(join(path, '.incoming', 'half'), 'half a file')
  await openFileFolder(path, { isGuest: true })
  t.same(
    await readdir(join(path, '.incoming')),
    ['half'],
    'but not by a guest: it may be on its way in the process that has it',
  )
  await openFileFolder(path)
  t.same(await readdir(join(path, '.incoming')), [])
})
