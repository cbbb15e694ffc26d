import ipaddr from 'ipaddr.js'

type Range = [ipaddr.IPv4 | ipaddr.IPv6, number]

export interface ClientAddress {
  address: string
  /** Identity of a client for limits: the address, or the /64 of an IPv6 one, which belongs to one client. */
  network: string
  /**
   * The client is on this machine, speaks for nobody else, and addressed this machine by one of its own names: a page
   * of another site, whose name was made to lead here, makes a browser send that name.
   */
  isLocal: boolean
}

/** Finds the client, by the peer's address and the headers `X-Forwarded-For` and `Host`. */
export type AddressOf = (peer: string, forwardedFor: string | undefined, host: string | undefined) => ClientAddress

const PEERS_CACHED_MAX = 10_000

/**
 * Answers the client's address. `X-Forwarded-For` is read from its end, for as long as each hop is a trusted proxy:
 * everything before the first untrusted one may be forged.
 * @param ownHosts names of this machine, beside `localhost` and loopback addresses
 * @throws Error for a range that is no CIDR.
 */
export const clientAddresses = (trustedProxies: readonly string[], ownHosts: readonly string[] = []): AddressOf => {
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
  const isOwn = ownHost(ownHosts)
  return (peer, forwardedFor, host) => {
    if (forwardedFor === undefined) {
      const client = directly(peer)
      return client.isLocal && !isOwn(host) ? { ...client, isLocal: false } : client
    }
    let { address } = directly(peer)
    for (const hop of forwardedFor.split(',').reverse()) {
      if (!isTrusted(address)) break
      const named = plain(withoutPort(hop.trim()))
      if (!ipaddr.isValid(named)) break
      address = named
    }
    // A forwarder is not the client itself, and its statements about the client may be forged.
    return { address, network: networkOf(address), isLocal: false }
  }
}

const ownHost = (ownHosts: readonly string[]): ((host: string | undefined) => boolean) => {
  const own = new Set(['localhost', ...ownHosts.map((host) => host.toLowerCase())])
  return (host) => {
    const name = host?.replace(/:\d*$/, '').toLowerCase() ?? ''
    return own.has(name) || isLoopback(name.replace(/^\[(.*)\]$/, '$1'))
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
