import { listed, office, type Walk, type World } from './walks.ts'

const typeOf = (name: string): object => ({ name, primaryKey: 'number', fields: [{ name: 'number', type: 'text' }] })

/** Two owners, and a data type whose records are told apart by a number. */
const store = async (world: World) => {
  const { first, other, made } = await office(world)
  const dataTypeId = await made('/data-type', typeOf('Customers'))
  const numbered = (number: string): object => ({ dataTypeId, values: { number } })
  return { first, other, made, dataTypeId, numbered }
}

/** A write that gives a data type another name: it is there once, and the old one can be had again. */
const renamed = (operationId: string, what: string, method: 'PUT' | 'PATCH', body: object): Walk => ({
  operationId,
  what,
  prepare: async (world) => {
    const { first, other, dataTypeId } = await store(world)
    const url = `/data-type/${dataTypeId}`
    return {
      request: { by: first, method, url, body },
      other: { by: other, method, url, body },
      check: async (t, after) => {
        const session = await after.login(first.email)
        t.equal(await listed(session, '/data-types', 'name=After'), 1)
        t.equal((await session.call('POST', '/data-type', typeOf('Customers'))).status, 201, 'the old name is free')
      },
    }
  },
})

/** The same with the number of a record. */
const renumbered = (operationId: string, what: string, method: 'PUT' | 'PATCH'): Walk => ({
  operationId,
  what,
  prepare: async (world) => {
    const { first, other, made, dataTypeId, numbered } = await store(world)
    const url = `/data/${await made('/data', numbered('before'))}`
    const body = { values: { number: 'after' } }
    return {
      request: { by: first, method, url, body },
      other: { by: other, method, url, body },
      check: async (t, after) => {
        const session = await after.login(first.email)
        t.equal(await listed(session, '/data', `dataTypeId=${dataTypeId}&values.number=after`), 1)
        t.equal((await session.call('POST', '/data', numbered('before'))).status, 201, 'the old number is free')
      },
    }
  },
})

/** Commands of data types and records, as `WALKS`. */
export const DATA_WALKS: Walk[] = [
  {
    operationId: 'createDataType',
    what: 'a data type',
    prepare: async (world) => {
      const { first, other } = await office(world)
      const body = typeOf('Customers')
      return {
        request: { by: first, method: 'POST', url: '/data-type', body },
        other: { by: other, method: 'POST', url: '/data-type', body },
        check: async (t, after) =>
          void t.equal(await listed(await after.login(first.email), '/data-types', 'name=Customers'), 1),
      }
    },
  },
  renamed('amendDataType', "a data type's name", 'PATCH', { name: 'After' }),
  renamed('replaceDataType', 'a data type as a whole', 'PUT', typeOf('After')),
  {
    operationId: 'createData',
    what: 'a record',
    prepare: async (world) => {
      const { first, other, dataTypeId, numbered } = await store(world)
      const body = numbered('one')
      return {
        request: { by: first, method: 'POST', url: '/data', body },
        other: { by: other, method: 'POST', url: '/data', body },
        check: async (t, after) =>
          void t.equal(await listed(await after.login(first.email), '/data', `dataTypeId=${dataTypeId}`), 1),
      }
    },
  },
  renumbered('replaceData', "a record's number, as a whole", 'PUT'),
  renumbered('amendData', "a record's number", 'PATCH'),
]
