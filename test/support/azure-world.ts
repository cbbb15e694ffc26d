import type { Test } from 'tap'
import { undiciCaller } from '../../src/engines/undici/undici-caller.ts'
import { AzureProvider } from '../../src/features/identity/sign-in/azure-provider.ts'
import { azureRoutes } from '../../src/features/identity/sign-in/azure-routes.ts'
import { identityContext } from '../../src/features/identity/context.ts'
import { activeIntegration } from '../../src/features/integrations/app-integration.ts'
import { systemClock } from '../../src/kernel/system-clock.ts'
import { type Accounts, CLIENT, follow, type Lie, type openLiar, openProvider } from './oidc.ts'
import { IDENTITY_CONFIG, openIdentity, PASSWORD } from './open-identity.ts'

export const TENANT = '72f988bf-86f1-41af-91ab-2d7cd011db47'
const PUBLIC_URL = 'https://waymark.example.com'
export const CALLBACK = `${PUBLIC_URL}/api/v3/auth/azure/callback`
export const ADA = { email: 'ada@example.com', xms_edov: true, tid: TENANT }

/** An organization with an integration, whose tenant is a provider of the test, at the one address that may be called. */
export const openAzure = async (t: Test, issuer: () => string, timeoutSeconds?: number) => {
  const caller = undiciCaller({ clock: systemClock, allow: ['127.0.0.1/32'] })
  t.teardown(() => caller.close())
  const world = await openIdentity(t, {}, (services) =>
    azureRoutes(identityContext(services, { ...IDENTITY_CONFIG, publicUrl: PUBLIC_URL }), {
      provider: new AzureProvider(caller, issuer, timeoutSeconds),
      integrationOf: (id) => activeIntegration(services, id),
    }),
  )
  const owner = await world.signup()
  const body = { name: 'Sign-in', tenantId: TENANT, ...CLIENT }
  const { _id } = (await owner.call('POST', '/app-integration', body)).body.data
  const person = {
    name: 'Ada',
    email: 'Ada@example.com',
    password: PASSWORD,
    roleId: await world.roleId(owner, 'planner'),
  }
  const user = (await owner.call('POST', '/user', person)).body.data
  /** Begins; answers where the browser is sent, and its cookie. */
  const begin = async () => {
    const answer = await world.call('GET', `/auth/azure/${_id}`)
    return { location: answer.headers.location, cookie: answer.headers['set-cookie']?.split(';')[0] ?? '', answer }
  }
  const back = async (url: URL, cookie: string): Promise<{ code?: string; error?: string }> => {
    const { status, headers } = await world.call('GET', `/auth/azure/callback${url.search}`, { headers: { cookie } })
    t.equal(status, 302)
    return Object.fromEntries(new URLSearchParams(headers.location.replace('/#', '')))
  }
  const exchange = ({ code = '', cookie = '' }: { code?: string; cookie?: string }) =>
    world.call('POST', '/auth/exchange', { body: { code }, headers: { cookie } })
  return { ...world, owner, user, integrationId: _id as string, begin, back, exchange }
}

export const withProvider = async (t: Test, accounts: Accounts = { ada: ADA }) => {
  const provider = await openProvider(t, CALLBACK, accounts)
  const world = await openAzure(t, () => provider.issuer)
  const signIn = async (as = 'ada') => {
    provider.signIn.as = as
    const { location, cookie } = await world.begin()
    const url = await follow(location, provider.issuer)
    return { url, cookie, ...(await world.back(url, cookie)) }
  }
  return { ...world, ...provider, signInAs: signIn }
}

/** An organization whose tenant is the liar; `attempt` begins, and comes back with a code that the lie is told for. */
export const withLiar = async (t: Test, liar: Awaited<ReturnType<typeof openLiar>>, timeoutSeconds?: number) => {
  const world = await openAzure(t, () => liar.issuer, timeoutSeconds)
  const attempt = async (lie: Lie) => {
    const { location, cookie } = await world.begin()
    const asked = new URL(location).searchParams
    Object.assign(liar.told, { lie, nonce: asked.get('nonce') ?? '' })
    return world.back(new URL(`${CALLBACK}?code=any&state=${asked.get('state')}`), cookie)
  }
  return { ...world, attempt }
}
