import { codeAt } from './code-at.ts'
import { type openIdentity, PASSWORD, type Session } from './open-identity.ts'

type World = Awaited<ReturnType<typeof openIdentity>>

/** Sets up a second factor, and lets its step of time pass. */
export const enrol = async (
  { clock }: Pick<World, 'clock'>,
  session: Session,
  password = PASSWORD,
): Promise<{ secret: string; recoveryCodes: string[]; code: () => string }> => {
  const begun = await session.call('POST', '/auth/second-factor', { password })
  if (begun.status !== 200) throw new Error(JSON.stringify(begun.body))
  const { secret } = begun.body.data
  const confirmed = await session.call('POST', '/auth/second-factor/confirm', { code: codeAt(secret, clock.now()) })
  if (confirmed.status !== 200) throw new Error(JSON.stringify(confirmed.body))
  clock.advance(60_000)
  return { secret, recoveryCodes: confirmed.body.data.recoveryCodes, code: () => codeAt(secret, clock.now()) }
}
