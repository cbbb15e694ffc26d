import { test } from 'tap'
import { parseMultipart } from '../../../src/kit/http/multipart.ts'
import { readStreamedForm } from '../../../src/kit/http/streamed-form.ts'

const TYPE = 'multipart/form-data; boundary=B'
const formOf = (disposition: string): Buffer =>
  Buffer.from(`--B\r\nContent-Disposition: form-data${disposition}\r\n\r\nx\r\n--B--\r\n`)

test('a text that no field of a form takes', async (t) => {
  const sink = { store: async () => 'stored', discard: async () => undefined }
  const body = async function* (bytes: Buffer) {
    yield bytes
  }
  const readers: { [name: string]: (bytes: Buffer) => Promise<object> } = {
    whole: (bytes: Buffer) => parseMultipart(TYPE, bytes, { fields: ['type'], files: { file: 1 }, fileBytesMax: 9 }),
    streamed: (bytes: Buffer) => readStreamedForm(TYPE, body(bytes), { fields: ['type'], file: 'file' }, sink),
  }
  for (const [name, read] of Object.entries(readers)) {
    t.match(await read(formOf('; name="type"')), { fields: { type: 'x' } }, name)
    const file = read(formOf('; name="file"'))
    await t.rejects(file, { message: '/file must be a file: its part needs a filename' }, `${name}: a file as a text`)
    await t.rejects(read(formOf('; name="tpye"')), { message: '/tpye is not a known field' }, `${name}: a typing error`)
    await t.rejects(read(formOf('')), { message: /no whole multipart/ }, `${name}: a part without a name`)
  }
})
