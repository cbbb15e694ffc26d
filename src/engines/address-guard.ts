import ipaddr from 'ipaddr.js'
import { PLATFORM_ADDRESSES } from './platform-addresses.ts'

type Address = ipaddr.IPv4 | ipaddr.IPv6
type Range = [Address, number]

/** 64:ff9b::/96 and 64:ff9b:1::/48 (NAT64), 2002::/16 (6to4), ::/96 (IPv4-compatible) and the like are no unicast to ipaddr.js. */
const PUBLIC = 'unicast'
/** All that IANA assigned to the open network; ::/96, 100:0:0:1::/64, 5f00::/16 and unassigned ranges lie outside. */
const GLOBAL_IPV6 = ipaddr.parseCIDR('2000::/3') as Range
/** Internal ranges that ipaddr.js counts as unicast. */
const REFUSED_TOO: readonly Range[] = ['2001::/23', '3fff::/20', ...PLATFORM_ADDRESSES.map(({ cidr }) => cidr)].map(
  (cidr) => ipaddr.parseCIDR(cidr) as Range,
)

/** The dotted form of ::/96, which ipaddr.js reads as an IPv4-mapped address. */
const IPV4_COMPATIBLE = /^::\d+\./

/** Whether an address may be connected to; refuses anything that is not an address at all. */
export type AddressGuard = (address: string) => boolean

/**
 * Refuses loopback, link-local, private, shared, multicast, reserved and translated ranges of both families (the
 * registries of IANA, RFC 6890), unassigned ranges of IPv6, and the addresses of clouds for their own machines, except
 * those that `allow` names.
 * @throws Error for a range that is no CIDR.
 */
export const addressGuard = (allow: readonly string[]): AddressGuard => {
  const allowed = allow.map((cidr) => ipaddr.parseCIDR(cidr) as Range)
  return (text) => {
    if (!ipaddr.isValid(text) || IPV4_COMPATIBLE.test(text)) return false
    const address = ipaddr.process(text.replace(/%.*$/, '')) // an IPv4-mapped address is judged as the IPv4 address that it is
    if (allowed.some((range) => within(address, range))) return true
    if (address.kind() === 'ipv6' && !within(address, GLOBAL_IPV6)) return false
    return address.range() === PUBLIC && !REFUSED_TOO.some((range) => within(address, range))
  }
}

const within = (address: Address, [net, bits]: Range): boolean => {
  const base =
    net.kind() === 'ipv6' && (net as ipaddr.IPv6).isIPv4MappedAddress() && bits >= 96
      ? (net as ipaddr.IPv6).toIPv4Address()
      : net
  if (base.kind() !== address.kind()) return false
  return address.match(base as never, base === net ? bits : bits - 96)
}

/** The literal address in a host of a WHATWG url (octal, hexadecimal and short forms read), without brackets. */
export const literalAddress = (hostname: string): string | undefined => {
  const host = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname.replace(/\.+$/, '')
  return ipaddr.isValid(host) ? host : undefined
}
