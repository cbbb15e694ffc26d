import { generateKeyPairSync, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Provider } from 'oidc-provider'
import type { Test } from 'tap'

/** Claims of the accounts of a provider, by their `sub`. */
export type Accounts = { [sub: string]: { [claim: string]: unknown } }

export const CLIENT = { clientId: 'waymark', clientSecret: 'a-secret-of-32-characters-or-more' }

const listen = async (t: Test, server: Server): Promise<string> => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  t.teardown(() => {
    server.closeAllConnections()
    return new Promise((done) => server.close(done))
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

/** A provider of OpenID Connect on this machine, where whoever comes signs in as the account that `next` names. */
export const openProvider = async (t: Test, redirectUri: string, accounts: Accounts) => {
  let handle: (request: IncomingMessage, response: ServerResponse) => void = () => undefined
  const issuer = await listen(
    t,
    createServer((request, response) => handle(request, response)),
  )
  const signIn = { as: Object.keys(accounts)[0] }
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: CLIENT.clientId,
        client_secret: CLIENT.clientSecret,
        redirect_uris: [redirectUri],
        token_endpoint_auth_method: 'client_secret_post',
      },
    ],
    claims: { openid: ['sub', 'tid'], email: ['email', 'email_verified', 'xms_edov'] },
    conformIdTokenClaims: false,
    features: { devInteractions: { enabled: false } },
    cookies: { keys: ['a key of a test'] },
    interactions: { url: (_context, { uid }) => `/interaction/${uid}` },
    findAccount: (_context, accountId) => ({
      accountId,
      claims: async () => ({ sub: accountId, ...accounts[accountId] }),
    }),
    loadExistingGrant: async (context) => {
      const grant = new context.oidc.provider.Grant({
        clientId: context.oidc.client?.clientId,
        accountId: context.oidc.session?.accountId,
      })
      grant.addOIDCScope('openid email profile')
      await grant.save()
      return grant
    },
  })
  const routes = provider.callback()
  handle = (request, response) =>
    request.url?.startsWith('/interaction/')
      ? void provider.interactionFinished(request, response, { login: { accountId: signIn.as } })
      : void routes(request, response)
  return { issuer, signIn }
}

/** Goes where a browser would, with its cookies, until it leaves the provider; answers where to. */
export const follow = async (location: string, issuer: string): Promise<URL> => {
  const cookies = new Map<string, string>()
  for (let url = new URL(location); ; ) {
    if (!url.href.startsWith(issuer)) return url
    const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ')
    const answer = await fetch(url, { redirect: 'manual', headers: { cookie } })
    for (const line of answer.headers.getSetCookie()) {
      const [, name, value] = /^([^=]+)=([^;]*)/.exec(line) ?? []
      cookies.set(name, value)
    }
    const next = answer.headers.get('location')
    if (next === null) throw new Error(`${url.href}: ${answer.status} ${(await answer.text()).slice(0, 300)}`)
    url = new URL(next, url)
  }
}

/** What a provider that lies puts into its id token, beside what an honest one would. */
export type Lie = {
  claims?: { [claim: string]: unknown }
  head?: { [member: string]: unknown }
  /** The signature, of what is signed. */
  sign?: (text: string) => string
}

/** A provider that answers any code with an id token of the test's making; where `answered` says true, it has answered itself. */
export const openLiar = async (
  t: Test,
  honest: { [claim: string]: unknown },
  answered: (path: string, response: ServerResponse) => boolean = () => false,
) => {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 })
  const jwk = { ...publicKey.export({ format: 'jwk' }), kid: 'key', alg: 'RS256', use: 'sig' }
  const told: { lie: Lie; nonce: string; document: object; keys: object[] } = {
    lie: {},
    nonce: '',
    document: {},
    keys: [jwk],
  }
  const asked: string[] = []
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url')
  const signed = (text: string): string => sign('sha256', Buffer.from(text), privateKey).toString('base64url')
  let issuer = ''
  const idToken = (): string => {
    const now = Math.floor(Date.now() / 1_000)
    const { claims, head, sign: signText = signed } = told.lie
    const body = {
      iss: issuer,
      aud: CLIENT.clientId,
      sub: 's',
      iat: now,
      exp: now + 300,
      nonce: told.nonce,
      ...honest,
      ...claims,
    }
    const text = `${part({ alg: 'RS256', kid: 'key', ...head })}.${part(body)}`
    return `${text}.${signText(text)}`
  }
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    asked.push(path)
    const answers: { [path: string]: () => object } = {
      '/.well-known/openid-configuration': () => ({
        issuer,
        authorization_endpoint: `${issuer}/auth`,
        token_endpoint: `${issuer}/token`,
        jwks_uri: `${issuer}/jwks`,
        id_token_signing_alg_values_supported: ['RS256'],
        response_types_supported: ['code'],
        subject_types_supported: ['public'],
        ...told.document,
      }),
      '/jwks': () => ({ keys: told.keys }),
      '/token': () => ({ access_token: 'a', token_type: 'Bearer', id_token: idToken() }),
    }
    if (answered(path, response)) return
    const answer = answers[path]
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer?.() ?? {}))
  })
  issuer = await listen(t, server)
  return { issuer, told, asked, publicKey, jwk }
}
