import { existsSync } from 'node:fs'
import type { Config } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import { systemClock } from '../kernel/system-clock.ts'
import { openKeyring } from '../kit/keys/keyring-file.ts'
import { rotateTokenKey, type TokenKeysReport } from '../kit/keys/rotate-token-keys.ts'
import { askControl } from './control-socket.ts'

/** `waymark doctor --rotate-token-key`: done by the data folder's running service, else by this process. */
export const rotateKey = async (config: Pick<Config, 'dataPath' | 'keysPath' | 'tokenTtlMs'>): Promise<number> => {
  const answer = await askControl(config.dataPath, { command: 'rotateTokenKey' })
  if (answer?.ok === false) throw new ConfigError(answer.error ?? 'the key was not rotated')
  const { kid, before } = answer === undefined ? await rotateAlone(config) : (answer.report as TokenKeysReport)
  process.stdout.write(`tokens are signed with key ${kid} from now on\n`)
  for (const old of before)
    process.stdout.write(`those of key ${old.kid} are valid until they end, at the latest ${old.verifiesUntil}\n`)
  return 0
}

const rotateAlone = async ({
  keysPath,
  tokenTtlMs,
}: Pick<Config, 'keysPath' | 'tokenTtlMs'>): Promise<TokenKeysReport> => {
  if (!existsSync(keysPath)) throw new ConfigError(`there is no keyring at ${keysPath}; it is made at the first start`)
  try {
    return await rotateTokenKey(await openKeyring(keysPath), systemClock, tokenTtlMs)
  } catch (error) {
    throw new ConfigError((error as Error).message)
  }
}
