import { codeAt } from './code-at.ts'
import { type Answer, ask, call, type Json, type Service, signUp } from './service.ts'

const PASSWORD = 'Correct-horse-9-battery'
const STEP_MS = 30_000

/** Sets up the second factor of whoever has the token; answers the next code, which was not used yet. */
const enrolled = async (service: Service, token: string, password: string): Promise<() => string> => {
  const { secret } = (await ask(service, 'POST', '/auth/second-factor', { token, body: { password } })).data
  const body = { code: codeAt(secret, Date.now()) }
  await ask(service, 'POST', '/auth/second-factor/confirm', { token, body })
  return () => codeAt(secret, Date.now() + STEP_MS)
}

type Headers = { [name: string]: string }

/** Operations of the second factor, each called for somebody who is in the state that it needs. */
export const SECOND_FACTOR_CALLS: { [operationId: string]: (service: Service, headers: Headers) => Promise<Answer> } = {
  beginSecondFactor: async (service, headers) => {
    const { token, password } = await signUp(service, 'Beginning')
    return call(service, 'POST', '/auth/second-factor', { token, body: { password }, headers })
  },
  confirmSecondFactor: async (service, headers) => {
    const { token, email, password } = await signUp(service, 'Confirming')
    await ask(service, 'POST', '/auth/login', { body: { email, password } }) // a session that ends
    const { secret } = (await ask(service, 'POST', '/auth/second-factor', { token, body: { password } })).data
    const body = { code: codeAt(secret, Date.now()) }
    return call(service, 'POST', '/auth/second-factor/confirm', { token, body, headers })
  },
  replaceRecoveryCodes: async (service, headers) => {
    const { token, password } = await signUp(service, 'Replacing')
    const code = await enrolled(service, token, password)
    const body = { password, code: code() }
    return call(service, 'POST', '/auth/second-factor/recovery-codes', { token, body, headers })
  },
  removeSecondFactor: async (service, headers) => {
    const { token, password } = await signUp(service, 'Removing')
    const code = await enrolled(service, token, password)
    return call(service, 'DELETE', '/auth/second-factor', { token, body: { password, code: code() }, headers })
  },
  loginSecondStep: async (service, headers) => {
    const { token, email, password } = await signUp(service, 'Signing in')
    const code = await enrolled(service, token, password)
    const { challenge } = await ask(service, 'POST', '/auth/login', { body: { email, password } })
    return call(service, 'POST', '/auth/login/second-factor', { body: { challenge, code: code() }, headers })
  },
  resetSecondFactor: async (service, headers) => {
    const { token, email } = await signUp(service, 'Resetting')
    const roleId = (await ask(service, 'GET', '/roles?key=planner', { token })).data[0]._id
    const person: Json = { name: 'Forgetful', email: `forgetful.${email}`, password: PASSWORD, roleId }
    const { _id } = (await ask(service, 'POST', '/user', { token, body: person })).data
    const body = { email: person.email, password: PASSWORD }
    await enrolled(service, (await ask(service, 'POST', '/auth/login', { body })).token, PASSWORD)
    return call(service, 'DELETE', `/user/${_id}/second-factor`, { token, headers })
  },
}
