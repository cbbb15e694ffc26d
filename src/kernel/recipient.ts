/** One address as an envelope takes it: no list, comment, line break, name beside it or invisible character. */
const ONE_ADDRESS = /^[^\s<>()[\],;:\\"@\p{C}\p{Z}]+@[^\s<>()[\],;:\\"@\p{C}\p{Z}]+$/u
const CHARS_MAX = 254
/** At least one dot; a letter in the last part: an IP address is no domain. */
const DOMAIN = /^([\p{L}\p{N}]([\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+(?!\d+$)[\p{L}\p{N}]([\p{L}\p{N}-]*[\p{L}\p{N}])?$/u
/**
 * Domains that lead to internal machines, different ones wherever they are resolved: RFC 6761, 6762, 7686, 8375, the
 * one that ICANN keeps for private use, and names of home and office networks (RFC 6762, appendix G).
 */
const LOCAL = /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|invalid|onion)$/i

/**
 * Whether mail may be sent there: one address of the open network. A mail server would resolve a local name inside, and
 * invisible characters make an address look like another.
 */
export const isRecipient = (address: string): boolean => {
  if (address.length > CHARS_MAX || !ONE_ADDRESS.test(address)) return false
  const domain = address.slice(address.indexOf('@') + 1)
  return DOMAIN.test(domain) && !LOCAL.test(domain)
}
