import ipaddr from 'ipaddr.js'

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

export interface ClientAddress {
  address: string
  /** What is counted as one client: the address, or the /64 of an IPv6 one, of which each client has all. */
  network: string
  /** The client is on this machine, and no proxy says that it speaks for another. */
  isLocal: boolean
}

const PEERS_CACHED_MAX = 10_000

/**
 * Answers who is at the other end. `X-Forwarded-For` is read from its end, for as long as each hop is a trusted
 * proxy: what stands before the first one that is not may be made up.
 * @throws Error for a range that is no CIDR.
 */
export const clientAddresses = (
  trustedProxies: readonly string[],
): ((peer: string, forwardedFor: string | undefined) => ClientAddress) => {
  const ranges = trustedProxies.map((range) => parseRange(range))
  const isTrusted = (address: string): boolean => {
    if (!ipaddr.isValid(address)) return false
    const parsed = ipaddr.process(address)
    return ranges.some(([network, bits]) => network.kind() === parsed.kind() && parsed.match([network, bits] as never))
  }
  const known = new Map<string, ClientAddress>()
  const directly = (peer: string): ClientAddress => {
    const cached = known.get(peer)
    if (cached !== undefined) return cached
    const address = plain(peer)
    const client = { address, network: networkOf(address), isLocal: isLoopback(address) }
    if (known.size >= PEERS_CACHED_MAX) known.clear()
    known.set(peer, client)
    return client
  }
  return (peer, forwardedFor) => {
    if (forwardedFor === undefined) return directly(peer)
    const direct = directly(peer).address
    let address = direct
    for (const hop of forwardedFor.split(',').reverse()) {
      if (!isTrusted(address)) break
      const named = plain(withoutPort(hop.trim()))
      if (!ipaddr.isValid(named)) break
      address = named
    }
    // An untrusted hop that forwards for someone is not the client itself.
    return { address, network: networkOf(address), isLocal: address !== direct && isLoopback(address) }
  }
}

const parseRange = (range: string): Range => {
  if (range.includes('/')) return ipaddr.parseCIDR(range)
  const address = ipaddr.process(range)
  return [address, address.kind() === 'ipv4' ? 32 : 128]
}

/** Some proxies name the port too: `203.0.113.7:4711` or `[2001:db8::1]:4711`. */
const withoutPort = (hop: string): string => /^\[(.*)\](:\d+)?$/.exec(hop)?.[1] ?? hop.replace(/^([\d.]+):\d+$/, '$1')

const networkOf = (address: string): string => {
  if (!address.includes(':') || !ipaddr.isValid(address)) return address
  return `${ipaddr.IPv6.parse(address).toNormalizedString().split(':').slice(0, 4).join(':')}::/64`
}

const plain = (address: string): string => (ipaddr.isValid(address) ? ipaddr.process(address).toString() : address)

const isLoopback = (address: string): boolean =>
  ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback'
