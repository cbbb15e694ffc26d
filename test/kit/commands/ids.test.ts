import { test } from 'tap'
import { v5 } from 'uuid'
import { idFrom } from '../../../src/kit/commands/ids.ts'

const NAMESPACE = '6f5e7b0a-3c1d-5e0f-9a57-3b6e1c2d4f80'

test('derived ids are UUIDs of version 5, of names of any length and in any script', async (t) => {
  for (const name of ['', 'a', 'ż'.repeat(300), '€'.repeat(336), 'x'.repeat(337), '€'.repeat(2_000), 'a'])
    t.equal(idFrom(name, 3), v5(`${name}|3`, NAMESPACE), `${name.length} characters`)
})
