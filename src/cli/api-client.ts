import { request } from 'undici'

export interface ApiAnswer {
  status: number
  // biome-ignore lint/suspicious/noExplicitAny: an answer of any route
  json: any
}

/** A small client of the public API, for the command line. */
export const callApi = async (
  url: string,
  method: 'GET' | 'POST',
  path: string,
  options: { token?: string; body?: unknown } = {},
): Promise<ApiAnswer> => {
  const headers: { [name: string]: string } = {}
  if (options.token !== undefined) headers.authorization = `Bearer ${options.token}`
  if (options.body !== undefined) headers['content-type'] = 'application/json'
  const body = options.body === undefined ? undefined : JSON.stringify(options.body)
  const answer = await request(`${url}/api/v3${path}`, { method, headers, body })
  return { status: answer.statusCode, json: await answer.body.json() }
}

/** The `data` of an answer. @throws Error with the server's own sentence when it is not a success. */
export const dataOf = (answer: ApiAnswer): never => {
  if (answer.status >= 300) throw new Error(`the server answered ${answer.status}: ${answer.json?.message}`)
  return answer.json.data as never
}
