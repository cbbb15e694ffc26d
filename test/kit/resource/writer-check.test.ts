import { test } from 'tap'
import { hub } from '../../../src/features/hubs/hub.ts'
import type { ResourceServices } from '../../../src/kit/resource/declaration.ts'
import { ResourceWriter } from '../../../src/kit/resource/write.ts'

test('writers of the same resource share its compiled check: the validator forgets none', (t) => {
  let reads = 0
  const { fields } = hub.declaration
  const declaration = Object.defineProperty({ ...hub.declaration }, 'fields', {
    get: () => {
      reads++
      return fields
    },
  })
  const make = () => new ResourceWriter(declaration, {} as ResourceServices)
  make()
  t.ok(reads > 0, 'the first one looks at the fields')
  const before = reads
  make()
  t.equal(reads, before)
  t.end()
})
