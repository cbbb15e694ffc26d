import { Failure, invalid } from '../../../kernel/errors.ts'
import type { JsonSchema } from '../../../kernel/json.ts'
import { objectSchema, optional, secret } from '../../../kernel/schema.ts'
import { answered, dataAnswer, DATE_TIME } from '../../../kit/http/page-members.ts'
import { formatTime, metadataOf, userOf } from '../../../kit/http/request-context.ts'
import { route, type Reply, type Route, type RouteRequest } from '../../../kit/http/route.ts'
import { allWrote } from '../../../kit/commands/wrote.ts'
import { asService, originOf } from '../../../kit/resource/writes.ts'
import type { IdentityContext } from '../context.ts'
import { newRecoveryCodes, newSecret, recoveryHash, stepOf, takeCode } from './factor-codes.ts'
import type { Person } from '../people.ts'
import { CHANGE_FACTOR } from '../processes.ts'
import { resetSecondFactorRoute } from './reset-second-factor.ts'
import { noFactor, nothingOffered } from './second-factor.ts'
import { isFirstUse } from '../single-use.ts'

/** Time within which an offered factor must be confirmed. */
const OFFER_MS = 3_600_000
/** Time after a sign-in with Microsoft in which no password is required, because there may be none. */
const PROVIDER_MS = 10 * 60_000

const TAG = 'Second factor'
const PASSWORD = optional(secret({ max: 200 }))
const CODE = secret({ max: 40 })
/** The caller is not known to own the address. */
const UNVERIFIED =
  'Your e-mail address is not confirmed yet: follow the link that was mailed to it first. When the address is confirmed, a second factor that was set up before is taken off.'
const WARNING: JsonSchema = { type: 'string', description: 'Present while the e-mail address is not confirmed.' }
const RECOVERY_EXAMPLE = ['4f9k2-x7m3q', 'r8w1c-p5d6n']

const answer = (description: string, title: string, properties: { [name: string]: JsonSchema }, example: object) => ({
  200: dataAnswer(description, answered(title, properties, ['warning', 'due']), example),
})

const RECOVERY_ANSWER = answer(
  'Each code is good once, and is shown here alone: keep them somewhere safe.',
  'RecoveryCodes',
  { recoveryCodes: { type: 'array', items: { type: 'string' } }, warning: WARNING },
  { recoveryCodes: RECOVERY_EXAMPLE },
)

interface Proof {
  password?: string
  code: string
}

/** The second factor of the caller: codes of an app (TOTP, RFC 6238) and recovery codes. */
export const secondFactorRoutes = (context: IdentityContext): Route[] =>
  [readRoute, beginRoute, confirmRoute, replaceRoute, removeRoute, resetSecondFactorRoute].map((routeOf) =>
    routeOf(context),
  )

const readRoute = (context: IdentityContext): Route =>
  route({
    method: 'GET',
    path: '/auth/second-factor',
    operationId: 'readSecondFactor',
    summary: 'Read whether the calling person has a second factor, and whether they need one',
    tag: TAG,
    access: 'user',
    isPersonal: true,
    enrols: true,
    answers: answer(
      'The second factor.',
      'SecondFactor',
      {
        isOn: { type: 'boolean' },
        isRequired: { type: 'boolean', description: 'The organization asks for it.' },
        due: { ...DATE_TIME, description: 'From then on the organization asks for it.' },
        recoveryCodesLeft: { type: 'integer' },
      },
      { isOn: true, isRequired: false, recoveryCodesLeft: 10 },
    ),
    handler: async (request) => {
      const { factor } = (await personOf(context, request)).state
      const { isSecondFactorRequired: isRequired = false, secondFactorDueMs: dueMs } = userOf(request)
      const due = dueMs === undefined ? {} : { due: formatTime(dueMs) }
      const recoveryCodesLeft = factor?.recoveryHashes.length ?? 0
      return { body: { data: { isOn: factor !== undefined, isRequired, ...due, recoveryCodesLeft } } }
    },
  })

const beginRoute = (context: IdentityContext): Route =>
  route<object, { password?: string }>({
    method: 'POST',
    path: '/auth/second-factor',
    operationId: 'beginSecondFactor',
    summary: 'Begin to set up a second factor: a secret for an app, shown here alone',
    description:
      'Nothing changes until a code of it is given to `POST /auth/second-factor/confirm`, within an hour. The password may be left out within ten minutes of signing in with Microsoft.',
    tag: TAG,
    access: 'user',
    isPersonal: true,
    enrols: true,
    body: objectSchema({ password: PASSWORD }),
    bodyExample: { password: 'correct horse battery staple' },
    answers: answer(
      'The secret, in base 32, and as the address that an app reads as a QR code.',
      'SecondFactorSecret',
      {
        secret: { type: 'string' },
        otpauthUri: { type: 'string' },
        expiresAt: DATE_TIME,
        warning: WARNING,
      },
      {
        secret: 'JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP',
        otpauthUri: 'otpauth://totp/Waymark:ada%40example.com?secret=JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP&issuer=Waymark',
        expiresAt: '2026-01-01T09:00:00.000Z',
      },
    ),
    handler: (request) => begin(context, request),
  })

const confirmRoute = (context: IdentityContext): Route =>
  route<object, { code: string }>({
    method: 'POST',
    path: '/auth/second-factor/confirm',
    operationId: 'confirmSecondFactor',
    summary: 'Turn the second factor on with a code of the app; answers recovery codes and ends every other session',
    tag: TAG,
    access: 'user',
    isPersonal: true,
    enrols: true,
    body: objectSchema({ code: CODE }),
    bodyExample: { code: '123456' },
    answers: RECOVERY_ANSWER,
    handler: (request) => confirm(context, request),
  })

const replaceRoute = (context: IdentityContext): Route =>
  route<object, Proof>({
    method: 'POST',
    path: '/auth/second-factor/recovery-codes',
    operationId: 'replaceRecoveryCodes',
    summary: 'Replace the recovery codes: those from before are no longer good',
    tag: TAG,
    access: 'user',
    isPersonal: true,
    body: objectSchema({ password: PASSWORD, code: CODE }),
    bodyExample: { password: 'correct horse battery staple', code: '123456' },
    answers: RECOVERY_ANSWER,
    handler: (request) => replaceCodes(context, request),
  })

const removeRoute = (context: IdentityContext): Route =>
  route<object, Proof>({
    method: 'DELETE',
    path: '/auth/second-factor',
    operationId: 'removeSecondFactor',
    summary: 'Take the second factor off, with the password and a code; every other session ends',
    tag: TAG,
    access: 'user',
    isPersonal: true,
    body: objectSchema({ password: PASSWORD, code: CODE }),
    bodyExample: { password: 'correct horse battery staple', code: '123456' },
    answers: { 200: { description: 'It is off.' } },
    handler: (request) => remove(context, request),
  })

const begin = async (
  context: IdentityContext,
  request: RouteRequest<object, { password?: string }>,
): Promise<Reply> => {
  const { ids, now } = request
  const [factorId, seed] = [ids.next(), ids.next()]
  const person = await personOf(context, request)
  await assertPerson(context, request, person, request.body.password)
  const { sealedSecret, ...shown } = await newSecret(context.services.keyring, seed, person.state.email)
  const expiresAt = formatTime(now + OFFER_MS)
  const { proofs } = person.state
  const command = { type: 'offerFactor', factorId, sealedSecret, expiresAt, proofs, at: formatTime(now) } as const
  const wrote = await context.people.command(person.identityId, command, { ids, metadata: metadataOf(request) })
  return { body: { data: { ...shown, expiresAt, ...warningFor(person) } }, wrote, secret: true }
}

const confirm = async (context: IdentityContext, request: RouteRequest<object, { code: string }>): Promise<Reply> => {
  const { ids, now, network, body } = request
  const { jti } = userOf(request)
  const codes = newRecoveryCodes(context.services.keyring, ids.next())
  const person = await personOf(context, request)
  const { identityId } = person
  const wrote = await context.services.processes.run(
    CHANGE_FACTOR,
    identityId,
    asService(originOf(request)),
    async () => {
      const { state } = await personOf(context, request)
      // The request that began this process was repeated.
      if (state.factor?.recoveryHashes[0] === recoveryHash(context.services.keyring, identityId, codes[0]))
        return undefined
      const { offered } = state
      if (offered === undefined || offered.expiresAt <= formatTime(now)) throw nothingOffered()
      await context.throttle.countCode(state.email, network, now)
      const step = await stepOf(context.services.keyring, offered.sealedSecret, body.code, now)
      if (step === undefined) throw new Failure('wrong_code')
      await isFirstUse(context, `step:${offered.factorId}:${step}`, (step + 3) * 30_000)
      const recoveryHashes = codes.map((code) => recoveryHash(context.services.keyring, identityId, code))
      const change = { type: 'confirmFactor', factorId: offered.factorId, recoveryHashes, at: formatTime(now) } as const
      return { identityId, change, keeps: jti }
    },
  )
  return { body: { data: { recoveryCodes: codes, ...warningFor(person) } }, wrote, secret: true }
}

const warningFor = ({ state }: Person): { warning?: string } => (state.isVerified ? {} : { warning: UNVERIFIED })

const replaceCodes = async (context: IdentityContext, request: RouteRequest<object, Proof>): Promise<Reply> => {
  const { ids, now } = request
  const { keyring } = context.services
  const codes = newRecoveryCodes(keyring, ids.next())
  const { identityId: own, state } = await personOf(context, request)
  // The request that made these codes was repeated: its code is spent.
  if (state.factor?.recoveryHashes[0] === recoveryHash(keyring, own, codes[0]))
    return { body: { data: { recoveryCodes: codes } }, secret: true }
  const { identityId, used } = await prove(context, request)
  const recoveryHashes = codes.map((code) => recoveryHash(keyring, identityId, code))
  const command = { type: 'replaceRecoveryCodes', recoveryHashes, at: formatTime(now) } as const
  const wrote = await context.people.command(identityId, command, { ids, metadata: metadataOf(request) })
  return { body: { data: { recoveryCodes: codes } }, wrote: allWrote(used, wrote), secret: true }
}

const remove = async (context: IdentityContext, request: RouteRequest<object, Proof>): Promise<Reply> => {
  const { identityId, used } = await prove(context, request)
  const change = { type: 'removeFactor', at: formatTime(request.now) } as const
  const data = { identityId, change, keeps: userOf(request).jti }
  const wrote = await context.services.processes.run(
    CHANGE_FACTOR,
    identityId,
    asService(originOf(request)),
    async () => data,
  )
  return { wrote: allWrote(used, wrote) }
}

/** Requires person and factor. @throws Failure conflict, wrong_password, wrong_code, rate_limited, invalid */
const prove = async (context: IdentityContext, request: RouteRequest<object, Proof>) => {
  const person = await personOf(context, request)
  const { factor } = person.state
  if (factor === undefined) throw noFactor()
  await assertPerson(context, request, person, request.body.password)
  const used = await takeCode(context, request, person, factor, request.body.code, metadataOf(request))
  return { identityId: person.identityId, used }
}

/** The finder of a token is not the person. @throws Failure wrong_password, rate_limited, invalid */
const assertPerson = async (
  context: IdentityContext,
  request: Pick<RouteRequest, 'caller' | 'network' | 'now'>,
  { identityId, state }: Person,
  password: string | undefined,
): Promise<void> => {
  const { network, now } = request
  if (password === undefined) {
    const { jti } = userOf(request)
    const session = (await context.sessions.live(identityId, now)).find((one) => one.jti === jti)
    if (session?.isByProvider === true && Date.parse(session.at) > now - PROVIDER_MS) return
    throw invalid('/password', 'is required')
  }
  const guard = context.throttle.guard(state.email, network, now)
  await guard.admit()
  if (!(await context.passwords.verify(password, state.passwordHash, guard))) throw new Failure('wrong_password')
}

const personOf = async (context: IdentityContext, request: Pick<RouteRequest, 'caller'>): Promise<Person> => {
  const person = await context.people.load(userOf(request).identityId)
  if (person === undefined) throw new Failure('unauthenticated')
  return person
}
