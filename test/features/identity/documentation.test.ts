import { test } from 'tap'
import { compileCheck } from '../../../src/kit/http/validate.ts'
import { openIdentity } from '../../support/open-identity.ts'

test('every example fits its schema, and no operation is named twice', async (t) => {
  const { routes } = await openIdentity(t)
  for (const { operationId, body, bodyExample, answers } of routes) {
    if (body !== undefined) t.same(compileCheck(body)(bodyExample), [], `body of ${operationId}`)
    for (const [status, { schema, example }] of Object.entries(answers)) {
      if (schema !== undefined) t.same(compileCheck(schema)(example), [], `${status} of ${operationId}`)
    }
  }
  const names = routes.flatMap(({ operationId, aliases = [] }) => [
    operationId,
    ...aliases.map((alias) => alias.operationId),
  ])
  t.equal(new Set(names).size, names.length)
  const places = routes.map(({ method, path }) => `${method} ${path.replace(/\{\w+\}/g, '{}')}`)
  t.equal(new Set(places).size, places.length)
})
