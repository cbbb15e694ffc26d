import type { IdentityContext } from '../context.ts'

interface NewPassword {
  password: string
  /** Names and addresses of the person. */
  about: readonly string[]
  /** The organization whose name it must not be either. */
  organizationId?: string
  /** The network that asks, where it is not the organization. */
  source?: string
}

/**
 * The hash of a password that somebody chose, once it is known to be hard to guess. Users with an older weak one still
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
