import { ConfigError } from './config-values.ts'

/** The engines that a URL selects, by the flag that takes it. */
export type EngineFlag = 'log' | 'tables' | 'history' | 'files'

interface Kind {
  scheme: RegExp
  /** Replaces the scheme, so that Node's parser reads the rest like a web address. */
  expected: string
}

const KINDS: { [Flag in EngineFlag]: Kind } = {
  log: { scheme: /^(lmdb:$|esdb(\+discover)?:\/\/)/, expected: 'lmdb:, esdb://host:2113 or esdb+discover://host:2113' },
  tables: { scheme: /^(lmdb:$|rediss?:\/\/)/, expected: 'lmdb:, redis://host:6379 or rediss://host:6379' },
  history: { scheme: /^(chdb:$|https?:\/\/)/, expected: 'chdb:, http://host:8123/database or https://…' },
  files: { scheme: /^(file:|s3:\/\/)/, expected: 'file:<folder> or s3://bucket/prefix' },
}

/** A URL as it may be shown: without credentials before the host and secret parameters, even if it cannot be parsed. */
export const shownUrl = (url: string): string =>
  url.replace(/\/\/.*@/, '//***@').replace(/([?&][^=&]*(?:password|secret|token|key)[^=&]*=)[^&]*/gi, '$1***')

/**
 * The URL of an engine, if the flag has an engine for it and it is valid.
 * @throws ConfigError naming the flag and the expected value, without the password in it
 */
export const engineUrlOf = (flag: EngineFlag, url: string): string => {
  const { scheme, expected } = KINDS[flag]
  const refuse = (why: string): never => {
    throw new ConfigError(`--${flag} ${shownUrl(url)} ${why}; it must be ${expected} (see docs/operations.md)`)
  }
  if (!scheme.test(url)) return refuse('names no engine that Waymark has')
  if (/^(lmdb|chdb):$/.test(url)) return url
  if (url.startsWith('file:')) return /[^/]/.test(url.slice('file:'.length)) ? url : refuse('names no folder')
  // EventStoreDB lists the nodes of a cluster with commas, each with its port.
  const nodes = /^[^/]*\/\/(?:[^/]*@)?([^/?#]*)/.exec(url)?.[1] ?? ''
  if (nodes === '') return refuse('names no host')
  const parsed = url.replace(nodes, nodes.split(',')[0]).replace(/^[a-z0-9+]+:/, 'http:')
  if (!URL.canParse(parsed)) return refuse('cannot be read as a URL')
  for (const node of nodes.split(','))
    if (!URL.canParse(`http://${node}`) || node === '') return refuse('cannot be read as a URL')
  return url
}

/** Whether the engine of a URL lives in this process and its folder. */
export const isEmbedded = (url: string): boolean => /^(lmdb|chdb|file):/.test(url)
