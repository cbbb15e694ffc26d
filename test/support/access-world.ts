import { join } from 'node:path'
import { openKeyring } from '../../src/kit/keys/keyring-file.ts'
import { Tokens } from '../../src/features/identity/sessions/tokens.ts'
import { type ApiWorld, openApiWorld } from './api-world.ts'
import { bodyOf, headersOf } from './each-route.ts'
import { type Operation, operationsOf, referencesIn } from './open-api.ts'
import { ask, call, type Json, signUp, type Service } from './service.ts'

export interface Person {
  token: string
  /** Their own things by the name that a path gives them. */
  ids: { [name: string]: string }
}

export interface AccessWorld {
  /** An organization that holds one of everything, all of it in one hub where it can have one. */
  world: ApiWorld
  deviceKey: string
  ingestKey: string
  /** The owner of another organization. */
  outsider: Person
  /** May do everything that a role can allow but see all hubs; their hub is another one than that of the world's things. */
  limited: Person
  /** Has no permission. */
  bare: string
  disabled: string
  expired: string
}

const PASSWORD = 'Correct-horse-9-battery'

/** The example of the document with the ids of somebody's things; in a hub, where it can be in one. */
export const bodyWithHub = (operation: Operation, world: ApiWorld, document: Json): Json => {
  const body = bodyOf(operation, world)
  const takesHub = body !== undefined && referencesIn(operation.body?.schema, document).includes('/hubId')
  return takesHub ? { hubId: world.ids.hubId, ...body } : body
}

/** @param data the folder of the service: an expired token is signed with its key */
export const openAccessWorld = async (service: Service, data: string, document: Json): Promise<AccessWorld> => {
  const world = await openApiWorld(service)
  const as = (token: string) => async (method: string, path: string, body?: Json) =>
    (await ask(service, method, path, { token, body })).data
  const owner = as(world.token)
  await owner('PATCH', `/tracker/${world.ids.trackerId}`, { hubId: world.ids.hubId })
  await owner('PATCH', `/team/${world.ids.teamId}`, { name: 'Their team' })
  const { deviceKey } = await owner('POST', `/tracker/${world.ids.trackerId}/rotate-key`)
  const { key, _id: ingestKeyId } = await owner('POST', '/ingest-key', { name: 'Hub', hubId: world.ids.hubId })
  const ids = { ...(await makeThings(service, world.token, world, document)), ...world.ids, ingestKeyId }
  const hubId = (await owner('POST', '/hub', { name: 'Other hub', lat: 50, lng: 20 }))._id
  const [{ permissions }] = (await ask(service, 'GET', '/roles?key=admin', { token: world.token })).data
  const user = async (
    name: string,
    allowed: string[],
    hubIds: string[],
  ): Promise<{ token: string; userId: string }> => {
    const role = await owner('POST', '/role', { name, permissions: allowed })
    const email = `${name}.${world.email}`
    const made = await owner('POST', '/user', { name, email, password: PASSWORD, roleId: role._id, hubId: hubIds })
    const { token } = await ask(service, 'POST', '/auth/login', { body: { email, password: PASSWORD } })
    return { token, userId: made._id }
  }
  const limits = ['view/all-hubs', 'create/organization']
  const limited = await user(
    'limited',
    permissions.filter((one: string) => !limits.includes(one)),
    [hubId],
  )
  const bare = await user('bare', [], [world.ids.hubId])
  const disabled = await user('gone', permissions, [world.ids.hubId])
  await owner('PATCH', `/user/${disabled.userId}`, { status: 'disabled' })
  const stranger = await signUp(service, 'Outsider')
  const own = async (token: string, base: ApiWorld): Promise<Person> => ({
    token,
    ids: await makeThings(service, token, base, document),
  })
  return {
    world: { ...world, ids },
    deviceKey,
    ingestKey: key,
    outsider: await own(stranger.token, { ...world, ...stranger, ids: { hubId: stranger.hubId } }),
    limited: await own(limited.token, { ...world, ids: { hubId } }),
    bare: bare.token,
    disabled: disabled.token,
    expired: await expiredToken(data, world),
  }
}

/** What others are made of comes first; the rest in the order of the document. */
const FIRST = ['createRole', 'createUser', 'createTeam', 'createVehicle', 'createTracker', 'createGeofenceGroup']

/** One of everything that can be created, from the examples of the document. */
const makeThings = async (service: Service, token: string, base: ApiWorld, document: Json): Promise<Person['ids']> => {
  const operations = operationsOf(document)
  const ids = { ...base.ids }
  const creates = operations.filter(({ method, params, path }) => {
    const isMade = operations.some((one) => one.method === 'DELETE' && one.path.startsWith(`${path}/{`))
    return method === 'POST' && params.length === 0 && isMade
  })
  const rank = ({ operationId }: Operation): number =>
    (FIRST.indexOf(operationId) + FIRST.length + 1) % (FIRST.length + 1)
  creates.sort((a, b) => rank(a) - rank(b))
  for (const create of creates) {
    const param = paramBelow(create.path, operations)
    if (param === undefined || base.ids[param] !== undefined) continue
    const body = bodyWithHub(create, { ...base, ids }, document)
    const headers = headersOf(create)
    const { status, text, json } = await call(service, 'POST', create.path, { token, body, headers })
    if (status !== 201) throw new Error(`${create.operationId}: ${status} ${text.slice(0, 400)}`)
    ids[param] = json.data._id
    if (param === 'userId') ids.email = json.data.email
    if (param === 'dataTypeId') ids.name = json.data.name
  }
  return ids
}

const paramBelow = (path: string, operations: readonly Operation[]): string | undefined =>
  operations.find((one) => one.method === 'DELETE' && one.path.startsWith(`${path}/{`))?.params[0]

const expiredToken = async (data: string, { token }: ApiWorld): Promise<string> => {
  const { sub, org, jti } = JSON.parse(Buffer.from(token.split('.')[1], 'base64url').toString())
  const tokens = new Tokens(await openKeyring(join(data, 'keys.json')), 60_000)
  return tokens.issue({ userId: sub, organizationId: org, jti }, Date.now() - 120_000).token
}
