import type { Clock } from '../../../kernel/clock.ts'
import { idSource } from '../../../kit/commands/ids.ts'
import type { Services } from '../../../kit/services.ts'
import { linkToken, newLink } from './links.ts'
import { People } from '../people.ts'

/**
 * Token of a link that sets a person's password, for the operator to hand over: nothing is mailed. With `endsFactor`,
 * following it also removes their second factor.
 * @throws Error if nobody has the address.
 */
export const operatorLink = async (
  services: Pick<Services, 'log' | 'keyring'> & { clock: Pick<Clock, 'now'> },
  email: string,
  endsFactor: boolean,
): Promise<{ token: string; expiresAt: string }> => {
  const people = new People(services)
  const person = await people.findByEmail(email)
  if (person === undefined) throw new Error(`nobody has the address ${email}`)
  const { identityId, state } = person
  const now = services.clock.now()
  const ids = idSource(now)
  const link = newLink({ linkId: ids.next(), kind: 'reset', email: state.email, isHandedOver: true, endsFactor }, now)
  const metadata = { actor: 'operator' }
  await people.command(identityId, { type: 'issueLink', link, at: link.at }, { ids, metadata })
  return { token: linkToken(services.keyring, identityId, link.linkId), expiresAt: link.expiresAt }
}
