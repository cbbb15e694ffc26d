import { formOf } from './pictures.ts'
import { type Answer, ask, call, type Service, until } from './service.ts'

// biome-ignore lint/suspicious/noExplicitAny: bodies of any route
type Json = any

/** Sends a file as a form does. */
export const sendFile = async (
  service: Pick<Service, 'url'>,
  token: string,
  file: string | Uint8Array,
  fields: { [name: string]: string },
  { path = '/data/import', name = 'file.csv' } = {},
): Promise<Answer> => {
  const form = new FormData()
  for (const [field, value] of Object.entries(fields)) form.set(field, value)
  form.set('file', new Blob([typeof file === 'string' ? file : new Uint8Array(file)]), name)
  return call(service, 'POST', path, { token, ...(await formOf(form)) })
}

/** How an import is once it has ended. */
export const ended = async (service: Pick<Service, 'url'>, token: string, id: string): Promise<Json> => {
  let row: Json
  await until(`the end of the import ${id}`, async () => {
    row = (await ask(service, 'GET', `/import-monitoring/${id}`, { token })).data
    return row.status !== 'queued' && row.status !== 'processing'
  })
  return row
}

/** Imports a file to its end. */
export const imported = async (...args: Parameters<typeof sendFile>): Promise<Json> => {
  const answer = await sendFile(...args)
  if (answer.status !== 202) throw new Error(`${answer.status} ${answer.text}`)
  return ended(args[0], args[1], answer.json.data._id)
}
