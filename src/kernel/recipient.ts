/** One address as an envelope takes it: no list, no comment, no line break, no name beside it, nothing that is not seen. */
const ONE_ADDRESS = /^[^\s<>()[\],;:\\"@\p{C}\p{Z}]+@[^\s<>()[\],;:\\"@\p{C}\p{Z}]+$/u
const CHARS_MAX = 254
/** At least one dot; a letter in the last part: an IP address is no domain. */
const DOMAIN = /^([\p{L}\p{N}]([\p{L}\p{N}-]*[\p{L}\p{N}])?\.)+(?!\d+$)[\p{L}\p{N}]([\p{L}\p{N}-]*[\p{L}\p{N}])?$/u
/**
 * Domains that lead to machines inside, and to different ones wherever they are asked for: RFC 6761, 6762, 7686, 8375, the
 * one that ICANN keeps for private use, and what home and office networks are called (RFC 6762, appendix G).
 */
const LOCAL = /(^|\.)(localhost|localdomain|local|internal|intranet|private|corp|home|lan|home\.arpa|invalid|onion)$/i

/**
 * Whether mail may go there: one address of the open network. A mail server would look a local name up inside, and characters
 * that are not seen show another address than they are.
 */
export const isRecipient = (address: string): boolean => {
  if (address.length > CHARS_MAX || !ONE_ADDRESS.test(address)) return false
  const domain = address.slice(address.indexOf('@') + 1)
  return DOMAIN.test(domain) && !LOCAL.test(domain)
}
