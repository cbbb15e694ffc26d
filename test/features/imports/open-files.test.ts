import { test } from 'tap'
import { OpenFiles } from '../../../src/features/imports/open-files.ts'
import { systemClock } from '../../../src/kernel/system-clock.ts'

const FILE = Buffer.from('name\nAda\n')

async function* pieces() {
  yield FILE
}

test('organizations whose files wait to be read take turns', async (t) => {
  const begun: string[] = []
  const get = async (key: string) => {
    begun.push(key)
    return { bytes: FILE.length, stream: pieces() }
  }
  const files = new OpenFiles({ files: { get }, clock: systemClock } as unknown as ConstructorParameters<
    typeof OpenFiles
  >[0])
  let go = (): void => undefined
  const gate = new Promise<void>((resolve) => {
    go = resolve
  })
  const read = (organizationId: string, key: string) =>
    files.with({ organizationId, key }, { signal: new AbortController().signal }, async ({ columns }) => {
      await gate
      return columns
    })
  const asked = ['a1', 'a2', 'a3', 'a4', 'a5', 'b1'].map((key) => read(key[0], key))
  go()
  t.same(await Promise.all(asked), Array(6).fill(['name']))
  t.same(begun.slice(0, 2), ['a1', 'a2'])
  t.same(begun.slice(2, 4).sort(), ['a3', 'b1'], 'not behind all that the other one asked for')
})
