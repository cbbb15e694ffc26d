import { existsSync, readFileSync } from 'node:fs'
import { isIP, isIPv4 } from 'node:net'
import { DEVICE_PROTOCOLS, type DeviceProtocol } from './devices/stream.ts'

/** An unusable flag or variable; ends the process with exit code 2. */
export class ConfigError extends Error {}

const UNITS: { [unit: string]: number } = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** `5s`, `5m`, `2h`, `7d`, `250ms`. */
export const durationMs = (flag: string, text: string): number => {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(text.trim())
  if (match === null) throw new ConfigError(`--${flag} must be a duration such as 5s, 5m, 2h or 7d, not "${text}"`)
  return Math.round(Number(match[1]) * UNITS[match[2]])
}

const BYTES: { [unit: string]: number } = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 }

/** `512KiB`, `20MiB`, `2GiB`; at most 5 GiB by default. */
export const bytesOf = (flag: string, text: string, mostGiB = 5): number => {
  const match = /^(\d{1,10})(B|KiB|MiB|GiB)$/.exec(text.trim())
  const bytes = match === null ? 0 : Number(match[1]) * BYTES[match[2]]
  if (bytes >= 1 && bytes <= mostGiB * BYTES.GiB) return bytes
  throw new ConfigError(`--${flag} must be a size such as 512KiB, 20MiB or 2GiB, at most ${mostGiB}GiB, not "${text}"`)
}

export const atLeast = (name: string, value: number, least: number, shown: string): number => {
  if (value >= least) return value
  throw new ConfigError(`--${name} must be ${shown} or more`)
}

/** A range of addresses as a CIDR; a single address is a range of one. */
export const cidrOf = (name: string, text: string): string => {
  const [address, bits, ...more] = text.split('/')
  const most = { 0: -1, 4: 32, 6: 128 }[isIP(address)] as number
  const prefix = bits === undefined ? most : Number(bits)
  if (most < 0 || bits === '' || more.length > 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > most)
    throw new ConfigError(`--${name} must be addresses or ranges such as 10.0.0.0/8 or fd00::/8, not "${text}"`)
  return `${address}/${prefix}`
}

const DEVICE_PORT = new RegExp(`^(${DEVICE_PROTOCOLS.join('|')}):(\\d{1,5})$`)

/** `teltonika:5027`, one or several; they need a key. */
export const devicesOf = (
  texts: readonly string[],
  key: string | undefined,
): { protocol: DeviceProtocol; port: number }[] => {
  if (texts.length > 0 && key === undefined)
    throw new ConfigError('--devices needs --devices-key, an ingest key (better: WAYMARK_DEVICES_KEY_FILE)')
  return texts.map((text) => {
    const [, protocol, port] = DEVICE_PORT.exec(text) ?? []
    if (protocol === undefined || Number(port) > 65_535)
      throw new ConfigError(
        `--devices must be like teltonika:5027,gt06:5023 (${DEVICE_PROTOCOLS.join(', ')}), not "${text}"`,
      )
    return { protocol: protocol as DeviceProtocol, port: Number(port) }
  })
}

/** The answer never repeats the URL: it may hold a password. */
export const mqttOf = (url: string | undefined, key: string | undefined): string | undefined => {
  if (url === undefined) return undefined
  if (!/^mqtts?:\/\/[^/?#]+\/?$/.test(url) || !URL.canParse(url) || new URL(url).hostname === '')
    throw new ConfigError('--mqtt must be mqtt://host:port or mqtts://host:port, with user:password@ where needed')
  if (key === undefined) throw new ConfigError('--mqtt needs --mqtt-key, an ingest key (better: WAYMARK_MQTT_KEY_FILE)')
  return url
}

export const scheduleOf = (delays: readonly string[]): number[] => {
  if (delays.length === 0) throw new ConfigError('--webhook-schedule must have at least one delay')
  return delays.map((text) => durationMs('webhook-schedule', text))
}

export const originOf = (text: string): string => {
  if (text === '*' || (URL.canParse(text) && new URL(text).origin === text)) return text
  throw new ConfigError(`--cors-origins must be * or origins such as https://map.example.com, not "${text}"`)
}

const ORGANIZATION_ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Everybody, nobody (but staff), or ids of organizations. */
export const rolloutOf = (texts: readonly string[]): readonly string[] | '*' => {
  if (texts.length === 1 && texts[0] === '*') return '*'
  if (texts.length === 1 && texts[0] === 'none') return []
  const ids = texts.map((text) => text.toLowerCase())
  const at = ids.findIndex((text) => !ORGANIZATION_ID.test(text))
  if (at < 0) return ids
  throw new ConfigError(`--geofence-rollout must be *, none or ids of organizations, not "${texts[at]}"`)
}

export const domainOf = (text: string): string => {
  if (/^[^@\s]+$/.test(text)) return text.toLowerCase()
  throw new ConfigError(`--staff must be e-mail domains such as example.com, not "${text}"`)
}

export const booleanOf = (name: string, text: string): boolean => {
  if (['true', '1', 'on', 'yes'].includes(text)) return true
  if (['false', '0', 'off', 'no'].includes(text)) return false
  throw new ConfigError(`--${name} must be on or off, not "${text}"`)
}

/** The answer never repeats the text: it may hold a password. */
export const smtpOf = (text: string): string => {
  const isUrl = /^smtps?:\/\/[^/]/.test(text) && URL.canParse(text)
  if (isUrl || /^file:./.test(text)) return text
  throw new ConfigError('--smtp must be file:<folder>, smtp://host:port or smtps://host:port')
}

/** `address` or `name <address>`. */
export const senderOf = (text: string): string => {
  if (/^(?:[^<>\r\n]* <)?[^\s<>@,]+@[^\s<>@,]+>?$/.test(text) && text.includes('<') === text.endsWith('>')) return text
  throw new ConfigError(`--mail-from must be an address such as waymark@example.com, not "${text}"`)
}

export const publicUrlOf = (text: string | undefined): string | undefined => {
  if (text === undefined) return undefined
  const isUrl = /^https?:\/\//.test(text) && URL.canParse(text) && !/[?#]/.test(text)
  if (isUrl) return text.replace(/\/+$/, '')
  throw new ConfigError(`--public-url must be an address such as https://map.example.com, not "${text}"`)
}

/** The address of a server to call; it must not hold secrets. */
export const serverUrlOf = (flag: string, text: string | undefined): string | undefined => {
  if (text === undefined) return undefined
  const isUrl = /^https?:\/\//.test(text) && URL.canParse(text) && !/[?#@]/.test(text)
  if (isUrl) return text.replace(/\/+$/, '')
  throw new ConfigError(`--${flag} must be an address such as http://127.0.0.1:5000, not "${text}"`)
}

export const addonOriginOf = (text: string | undefined): string | undefined => {
  if (text === undefined || (/^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text)) return text
  throw new ConfigError(`--addon-origin must be an origin such as https://addons.example.com, not "${text}"`)
}

export const mapStyleOf = (text: string | undefined): string | undefined => {
  if (text === undefined || (/^https?:\/\//.test(text) && URL.canParse(text) && new URL(text).username === ''))
    return text
  throw new ConfigError(`--map-style must be an address such as https://tiles.example.com/style.json, not "${text}"`)
}

/** They become part of a header: only origins may. */
export const mapOriginOf = (text: string): string => {
  if (/^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text) return text
  throw new ConfigError(`--map-origins must be origins such as https://tiles.example.com, not "${text}"`)
}

/** Whether only this machine can reach a listening address. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))

/** A variable, or the content of the file that the same name with _FILE names. */
export const fromEnvironment = (variable: string, environment: NodeJS.ProcessEnv): string | undefined => {
  const file = environment[`${variable}_FILE`]
  if (file === undefined) return environment[variable]
  if (!existsSync(file)) throw new ConfigError(`${variable}_FILE names ${file}, which does not exist`)
  try {
    return readFileSync(file, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(`${variable}_FILE names ${file}, which cannot be read: ${(error as Error).message}`)
  }
}
