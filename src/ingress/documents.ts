import { route, type Route } from '../kit/http/route.ts'
import { asyncApiDocument } from './asyncapi.ts'
import { openApiDocument } from './openapi.ts'
import type { IngressOptions } from './options.ts'

/** The routes where the running server describes itself. They are part of the description. */
export const documentRoutes = ({
  routes,
  channelDocuments,
  webhookDocuments,
  info,
}: Pick<IngressOptions, 'routes' | 'channelDocuments' | 'webhookDocuments' | 'info'>): Route[] => {
  const texts = new Map<string, string>()
  const documentRoute = (path: string, operationId: string, summary: string, make: () => unknown): Route =>
    route({
      method: 'GET',
      path,
      root: true,
      operationId,
      summary,
      tag: 'Operations',
      access: 'public',
      answers: { 200: { description: 'The document.', schema: { type: 'object' } } },
      handler: async () => {
        const text = texts.get(path) ?? JSON.stringify(make())
        texts.set(path, text)
        return {
          raw: text,
          headers: {
            'content-type': 'application/json; charset=utf-8',
            'cache-control': 'no-cache',
            'access-control-allow-origin': '*',
          },
        }
      },
    })
  const described: Route[] = [
    documentRoute('/openapi.json', 'readOpenApi', 'Read the OpenAPI document', () =>
      openApiDocument([...routes, ...described], webhookDocuments, info),
    ),
    documentRoute('/asyncapi.json', 'readAsyncApi', 'Read the AsyncAPI document', () =>
      asyncApiDocument(channelDocuments, info),
    ),
  ]
  return described
}
