import { test } from 'tap'
import { folderOf } from '../../support/folder-of.ts'
import { ended, sendFile } from '../../support/import-calls.ts'
import { allPages, ask, call, type Json, signUp, startService, until } from '../../support/service.ts'

const ROWS = 3_000

test('a type that is changed or deleted under an import is told of row by row, and nothing is made of what it was', {
  timeout: 600_000,
}, async (t) => {
  const service = await startService(folderOf(t))
  t.teardown(() => service.kill())
  const { token } = await signUp(service)
  const typeOf = async (name: string): Promise<Json> => {
    const fields = [
      { name: 'number', type: 'text' },
      { name: 'price', type: 'number' },
    ]
    return (await ask(service, 'POST', '/data-type', { token, body: { name, primaryKey: 'number', fields } })).data
  }
  const begun = async (dataTypeId: string, line: (n: number) => string): Promise<string> => {
    const csv = `number,price\n${Array.from({ length: ROWS }, (_, n) => line(n)).join('\n')}\n`
    const { json } = await sendFile(service, token, csv, { type: 'datasource', dataTypeId })
    await until('the first rows', async () => {
      const { data } = await ask(service, 'GET', `/import-monitoring/${json.data._id}`, { token })
      return data.processed > 0
    })
    return json.data._id
  }

  await t.test('a limit that is set meanwhile holds for the rows that come after', async (t) => {
    const type = await typeOf('Changed')
    const id = await begun(type._id, (n) => `n${n},${n}`)
    const fields = type.fields.map((field: Json) => (field.name === 'price' ? { ...field, max: 100 } : field))
    t.equal((await call(service, 'PATCH', `/data-type/${type._id}`, { token, body: { fields } })).status, 200)
    const { status, succeeded, failed, errors } = await ended(service, token, id)
    t.equal(succeeded + failed, ROWS)
    t.equal((await allPages(service, `/data?dataTypeId=${type._id}`, token)).length, succeeded)
    // A fast import may have ended before.
    if (failed > 0) t.match({ status, error: errors[0] }, { status: 'completedWithErrors', error: { column: 'price', code: 'invalid', message: /100/ } }) // biome-ignore format: one thing
  })

  await t.test('a type that is deleted meanwhile ends it by name', async (t) => {
    const type = await typeOf('Deleted')
    // Nothing of it is made, so that nothing keeps the type.
    const id = await begun(type._id, (n) => `n${n},much`)
    t.equal((await call(service, 'DELETE', `/data-type/${type._id}`, { token })).status, 200)
    const { status, succeeded } = await ended(service, token, id)
    t.ok(['completedWithErrors', 'failed'].includes(status), status)
    t.equal(succeeded, 0)
  })

  await t.test('one whose rows wait for it is deleted before they come', async (t) => {
    const [first, second] = [await typeOf('First'), await typeOf('Second')]
    const waiting: string[] = []
    await begun(first._id, (n) => `n${n},${n}`)
    for (let n = 0; n < 4; n++) {
      const { json } = await sendFile(service, token, `number,price\nn${n},1\n`, {
        type: 'datasource',
        dataTypeId: second._id,
      })
      waiting.push(json.data._id)
    }
    const { status } = await call(service, 'DELETE', `/data-type/${second._id}`, { token })
    for (const id of waiting) {
      const row = await ended(service, token, id)
      // A fast service has made the records first, and the type is in use.
      t.equal(row.succeeded, status === 200 ? 0 : 1)
      // One that had begun is told row by row.
      if (status === 200 && row.status !== 'completedWithErrors')
        t.match(row, { status: 'failed', error: { code: 'invalid', message: /dataTypeId/ } })
    }
  })
})
