import { test } from 'tap'
import { openApiDocument } from '../../../src/ingress/openapi.ts'
import { compileCheck } from '../../../src/kit/http/validate.ts'
import { openIdentity } from '../../support/open-identity.ts'

// biome-ignore lint/suspicious/noExplicitAny: parts of a document
type Json = any

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

test('the document says who may be refused without a token: whoever signs in', async (t) => {
  const { routes } = await openIdentity(t)
  const { paths } = openApiDocument(routes, [], { title: 'Waymark', version: '1' } as never)
  const refusing = routes.filter(({ path, method, access }) => {
    const responses = Object.keys((paths as Json)[path][method.toLowerCase()].responses)
    return access === 'public' && responses.includes('401') && responses.includes('403')
  })
  t.same(refusing.map(({ path }) => path).sort(), [
    '/auth/accept-invitation',
    '/auth/login',
    '/auth/login/second-factor',
    '/auth/signup',
    '/auth/verify-email',
  ])
})
