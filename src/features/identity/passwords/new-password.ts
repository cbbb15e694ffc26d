import type { IdentityContext } from '../context.ts'

interface NewPassword {
  password: string
  /** The person's names and addresses. */
  about: readonly string[]
  /** Organization whose name the password must not be. */
  organizationId?: string
  /** Network of the request, if the source is not the organization. */
  source?: string
}

/**
 * Hash of a password chosen by a person, after checking that it is hard to guess. Users with an older weak one still
 * sign in with it.
 * @throws Failure invalid for a weak password, overloaded
 */
export const hashNew = async (
  { organizations, passwords, strength }: Pick<IdentityContext, 'organizations' | 'passwords' | 'strength'>,
  { password, about, organizationId, source = organizationId ?? '' }: NewPassword,
): Promise<string> => {
  const organization = organizationId === undefined ? undefined : await organizations.load(organizationId)
  const name = organization?.state.values.name
  await strength.assertStrong(password, typeof name === 'string' ? [...about, name] : about, source)
  return passwords.hash(password, source)
}
