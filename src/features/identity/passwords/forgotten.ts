import { encodeJson } from '../../../kernel/event.ts'
import { normalizeKey } from '../../../kit/commands/unique-claim.ts'
import { formatTime, metadataOf } from '../../../kit/http/request-context.ts'
import type { Keyring } from '../../../kit/keys/keyring.ts'
import type { Services } from '../../../kit/services.ts'
import { FORGOTTEN_STREAMS, PASSWORD_FORGOTTEN, type PasswordForgotten } from '../events.ts'
import type { RouteRequest } from '../../../kit/http/route.ts'

const PURPOSE = 'forgotten-password'

export const forgottenStream = (keyring: Keyring, email: string): string =>
  FORGOTTEN_STREAMS + keyring.hmac(PURPOSE, normalizeKey(email)).toString('hex')

/** Records it without checking whether anybody has the address: the same work for every address. */
export const noteForgotten = async (
  { log, keyring }: Pick<Services, 'log' | 'keyring'>,
  email: string,
  request: Pick<RouteRequest, 'ids' | 'now' | 'correlationId' | 'traceparent' | 'address'>,
): Promise<void> => {
  const data: PasswordForgotten = { sealedEmail: keyring.encrypt(PURPOSE, email), at: formatTime(request.now) }
  const metadata = metadataOf(request)
  const event = { id: request.ids.next(), type: PASSWORD_FORGOTTEN, data: encodeJson(data), isJson: true, metadata }
  await log.append(forgottenStream(keyring, email), [event], 'any')
}

export const openForgotten = (keyring: Keyring, { sealedEmail }: PasswordForgotten): string =>
  keyring.decrypt(PURPOSE, sealedEmail)
