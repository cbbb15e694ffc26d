import { Failure } from '../../kernel/errors.ts'
import type { EngineHealth } from './engine-health.ts'
import type { Metrics } from './metrics.ts'
import { type Answer, route, type Route } from '../http/route.ts'

export interface OperationsOptions {
  metrics: Metrics
  health: EngineHealth
  /** Whether everything has been opened and caught up. */
  isReady: () => boolean
}

export const starting = (extra?: { [member: string]: unknown }): Failure =>
  new Failure('overloaded', { message: 'The service is starting.', retryAfterSeconds: 1, extra })

/** Endpoints for operators and load balancers: alive, ready, and the numbers. */
export const operationsRoutes = ({ metrics, health, isReady }: OperationsOptions): Route[] => [
  route({
    ...operation('/healthz', 'readLiveness', 'Whether the process is alive'),
    access: 'public',
    answers: { 200: answerOf('It is.', 'alive') },
    handler: async () => ({ body: { data: { alive: true } } }),
  }),
  route({
    ...operation('/readyz', 'readReadiness', 'Whether the service can take requests'),
    access: 'public',
    answers: { 200: answerOf('It can.', 'ready') },
    handler: async () => {
      if (!isReady()) throw starting({ engines: [] })
      const down = await health.down()
      if (down.length === 0) return { body: { data: { ready: true } } }
      const verb = down.length === 1 ? 'does' : 'do'
      throw new Failure('engine_down', {
        message: `The storage behind ${down.join(' and ')} ${verb} not answer.`,
        retryAfterSeconds: 1,
        extra: { engines: down },
      })
    },
  }),
  route({
    ...operation('/metrics', 'readMetrics', 'Read the metrics'),
    access: 'operator',
    answers: { 200: { description: 'In the text format of Prometheus.', contentType: 'text/plain' } },
    handler: async () => ({ raw: await metrics.text(), headers: { 'content-type': metrics.contentType } }),
  }),
]

const answerOf = (description: string, member: string): Answer => ({
  description,
  schema: {
    type: 'object',
    properties: {
      status: { const: true },
      data: { type: 'object', properties: { [member]: { const: true } }, required: [member] },
    },
    required: ['status', 'data'],
  },
})

const operation = (
  path: string,
  operationId: string,
  summary: string,
): Pick<Route, 'method' | 'path' | 'root' | 'operationId' | 'summary' | 'tag'> => ({
  method: 'GET',
  path,
  root: true,
  operationId,
  summary,
  tag: 'Operations',
})
