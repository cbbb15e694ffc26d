import { Agent, type Dispatcher, request, WebSocket } from 'undici'
import { ConfigError } from '../config-values.ts'

export interface ApiAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any route
  json: any
}

/** The server at the URL does not answer or cannot serve now, for example while it starts; it may come back. */
export class Unreachable extends ConfigError {}

export class ApiClient {
  readonly url: string
  private readonly dispatcher: Dispatcher | undefined

  /** `tls` adds trusted authorities to the well-known ones. @throws ConfigError for an invalid URL */
  constructor(url: string, tls?: { ca: string } | { rejectUnauthorized: false }) {
    if (!/^https?:\/\/[^/]+\/?$/.test(url) || !URL.canParse(url))
      throw new ConfigError(`--url must be like http://127.0.0.1:8080, not "${url}"`)
    this.url = url.replace(/\/$/, '')
    this.dispatcher = tls && new Agent({ connect: tls })
  }

  /** @throws ConfigError with the reason if there is no answer */
  async call(
    method: 'GET' | 'POST',
    path: string,
    options: { token?: string; body?: unknown } = {},
  ): Promise<ApiAnswer> {
    const headers: { [name: string]: string } = {}
    if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
    if (options.body !== undefined) headers['content-type'] = 'application/json'
    const body = options.body === undefined ? undefined : JSON.stringify(options.body)
    try {
      const { dispatcher } = this
      const answer = await request(`${this.url}/api/v3${path}`, { method, headers, body, dispatcher })
      return { status: answer.statusCode, json: await answer.body.json() }
    } catch (error) {
      throw this.failure(error as Error)
    }
  }

  /** Opens one of the two channels, `/ingest` or `/live`. */
  socket(path: string): WebSocket {
    return new WebSocket(`${this.url.replace(/^http/, 'ws')}/api/v3${path}`, { dispatcher: this.dispatcher })
  }

  private failure(error: Error & { code?: string }): ConfigError {
    if (error.code === 'ECONNREFUSED') return new Unreachable(`no service answers at ${this.url}`)
    if (error.code !== undefined && CERTIFICATE_ERRORS.test(error.code))
      return new ConfigError(
        `${this.url} has a certificate that is not trusted (${error.message}); name its file, or its authority's, with --ca`,
      )
    return new Unreachable(`${this.url} cannot be reached: ${error.message}`)
  }
}

const CERTIFICATE_ERRORS = /CERT|UNABLE_TO_|ERR_TLS_|HOSTNAME_MISMATCH|INVALID_CA|SELF_SIGNED/

/** The `data` of an answer. @throws Error with the server's own sentence if it is no success. */
export const dataOf = (answer: ApiAnswer): never => {
  if (answer.status >= 300) throw new Error(`the server answered ${answer.status}: ${answer.json?.message}`)
  return answer.json.data as never
}
