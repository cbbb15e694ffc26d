import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Failure } from '../../kernel/errors.ts'
import { route, type Route } from './route.ts'
import { type Ranged, rangedAnswers, sendRanged } from './send-ranged.ts'

/** Built files of a browser's page. Their names carry a hash of their content, so they never change. */
export interface StaticFiles {
  /** A folder of files without folders; `<name>.br` and `<name>.gz` beside one are the same, compressed. */
  folder: string
  /** Their path, such as `/assets`. */
  path: string
  operationId: string
  /** Headers of all of them. */
  headers: { [name: string]: string }
}

/** The route of all files of a folder, which are read once and held in memory. @throws Error where the folder cannot be read */
export const staticFiles = ({ folder, path, operationId, headers }: StaticFiles): Route => {
  const files = readFiles(folder)
  return route({
    method: 'GET',
    path: `${path}/{name}`,
    root: true,
    operationId,
    summary: 'A file of the page',
    description: 'Compressed for clients that take `br` or `gzip`, unless they ask for a `Range` of it.',
    tag: 'Page',
    access: 'public',
    params: { name: { type: 'string', pattern: '^[\\w.-]{1,200}$', description: 'The name of the file.' } },
    answers: rangedAnswers('The file.', '*/*'),
    handler: async (request) => {
      const file = files.get(request.params.name!)
      if (file === undefined) throw new Failure('not_found')
      const coded =
        request.headers.get('range') === undefined ? codingOf(file, request.headers.get('accept-encoding')) : ''
      const { bytes, etag } = file.forms.get(coded)!
      return sendRanged(inMemory(bytes), request, {
        etag,
        cacheControl: 'public, max-age=31536000, immutable',
        contentType: file.type,
        more: { ...headers, vary: 'Accept-Encoding', ...(coded !== '' && { 'content-encoding': coded }) },
      })
    },
  })
}

interface StaticFile {
  type: string
  /** By content coding; '' is the file as it is. */
  forms: Map<string, { bytes: Buffer; etag: string }>
}

/** Best first. */
const CODINGS = [
  ['br', '.br'],
  ['gzip', '.gz'],
] as const

const readFiles = (folder: string): Map<string, StaticFile> =>
  new Map(
    readdirSync(folder)
      .filter((name) => !CODINGS.some(([, ending]) => name.endsWith(ending)))
      .map((name) => [name, readFile(join(folder, name))]),
  )

const readFile = (path: string): StaticFile => {
  const forms: StaticFile['forms'] = new Map([['', formOf(path)]])
  for (const [coding, ending] of CODINGS) if (existsSync(path + ending)) forms.set(coding, formOf(path + ending))
  return { type: typeOf(path), forms }
}

const formOf = (path: string): { bytes: Buffer; etag: string } => {
  const bytes = readFileSync(path)
  return { bytes, etag: `"${createHash('sha256').update(bytes).digest('base64url')}"` }
}

const TYPES: { [ending: string]: string } = {
  css: 'text/css; charset=utf-8',
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  json: 'application/json',
  pbf: 'application/x-protobuf',
  png: 'image/png',
  svg: 'image/svg+xml',
  webp: 'image/webp',
  woff2: 'font/woff2',
}

const typeOf = (path: string): string => TYPES[path.slice(path.lastIndexOf('.') + 1)] ?? 'application/octet-stream'

/** The coding of the answer: the best that the client takes and the file has, '' for none. */
const codingOf = ({ forms }: StaticFile, accepted = ''): string => {
  const taken = accepted
    .toLowerCase()
    .split(',')
    .map((one) => one.trim())
    .filter((one) => !/;\s*q=0(\.0*)?$/.test(one))
    .map((one) => one.replace(/;.*/, '').trim())
  return CODINGS.find(([coding]) => forms.has(coding) && taken.includes(coding))?.[0] ?? ''
}

/** Bytes in memory, as a source of ranges. */
export const inMemory = (bytes: Uint8Array): Ranged => ({
  get: async (range) => ({
    bytes: bytes.byteLength,
    stream: once(range === undefined ? bytes : bytes.subarray(range.from, range.to + 1)),
  }),
})

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}
