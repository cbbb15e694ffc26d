import type { Readable } from 'node:stream'
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  HeadBucketCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutObjectCommand,
  S3Client,
  UploadPartCommand,
} from '@aws-sdk/client-s3'
import { Failure } from '../../kernel/errors.ts'
import { assertKey, fileTooLarge, type FileStore, type ListedFile } from '../file-store.ts'

export interface S3Options {
  /** `s3://bucket/prefix`; `?endpoint=http://…` for others than AWS, `?region=`. Credentials as for AWS' own tools. */
  url: string
  credentials?: { accessKeyId: string; secretAccessKey: string }
  /** For the beginning of an answer, and for each piece of its body. */
  timeoutMs?: number
}

/** The smallest part that S3 accepts. Smaller files go in one request. */
const PART_BYTES = 5 * 1024 * 1024
const CONNECT_TIMEOUT_MS = 3_000
const TIMEOUT_MS = 60_000

/** Files in a bucket of S3, or of a server that speaks its protocol: for services of many machines. */
export const openS3Files = async (options: S3Options): Promise<FileStore> => {
  const { timeoutMs = TIMEOUT_MS } = options
  const { client, bucket, prefix } = connect(options, timeoutMs)
  const objectOf = (key: string): { Bucket: string; Key: string } => {
    assertKey(key)
    return { Bucket: bucket, Key: prefix + key }
  }
  const store: FileStore = {
    put: (key, source, bytesMax) => put(client, objectOf(key), source, bytesMax),
    get: async (key, range) => {
      const object = objectOf(key)
      const Range = range === undefined ? undefined : `bytes=${range.from}-${range.to}`
      const found = await guarded(() => unlessAbsent(client.send(new GetObjectCommand({ ...object, Range }))))
      if (found === BEHIND_END) {
        const head = await guarded(() => unlessAbsent(client.send(new HeadObjectCommand(object))))
        return typeof head === 'object' ? { bytes: head.ContentLength ?? 0, stream: pieces([]) } : undefined
      }
      if (found === undefined) return undefined
      const bytes = Number(found.ContentRange?.split('/')[1] ?? found.ContentLength ?? 0)
      return { bytes, stream: bodyPieces(found.Body as Readable, timeoutMs) }
    },
    delete: async (key) => {
      const object = objectOf(key)
      await guarded(() => unlessAbsent(client.send(new DeleteObjectCommand(object))))
    },
    list: (keyPrefix) => list(client, bucket, prefix, keyPrefix),
    ping: () => guarded(async () => void (await client.send(new HeadBucketCommand({ Bucket: bucket })))),
    close: async () => client.destroy(),
  }
  await store.ping()
  return store
}

const connect = (
  { url, credentials }: S3Options,
  timeoutMs: number,
): { client: S3Client; bucket: string; prefix: string } => {
  const { hostname: bucket, pathname, searchParams } = new URL(url)
  const endpoint = searchParams.get('endpoint') ?? undefined
  const path = pathname.replace(/^\/|\/$/g, '')
  const client = new S3Client({
    region: searchParams.get('region') ?? (endpoint === undefined ? undefined : 'us-east-1'),
    endpoint,
    forcePathStyle: endpoint !== undefined,
    credentials,
    // Uploads in parts must not need another checksum than the protocol's own: other servers know none.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
    // Without the last one an unanswered request only logs a warning, and waits for ever.
    requestHandler: {
      connectionTimeout: CONNECT_TIMEOUT_MS,
      requestTimeout: timeoutMs,
      throwOnRequestTimeout: true,
    },
  })
  return { client, bucket, prefix: path === '' ? '' : `${path}/` }
}

type ObjectName = { Bucket: string; Key: string }

/** In one request if it fits a part; else in parts, which are invisible before the last. */
const put = async (
  client: S3Client,
  object: ObjectName,
  source: AsyncIterable<Uint8Array>,
  bytesMax: number,
): Promise<number> => {
  let bytes = 0
  let upload: MultipartUpload | undefined
  let held = new PartBuffer()
  try {
    for await (const piece of source) {
      bytes += piece.byteLength
      if (bytes > bytesMax) throw fileTooLarge(bytesMax)
      held.add(piece)
      if (held.bytes < PART_BYTES) continue
      upload ??= await MultipartUpload.begin(client, object)
      await upload.add(held.join())
      held = new PartBuffer()
    }
    if (upload === undefined) await guarded(() => client.send(new PutObjectCommand({ ...object, Body: held.join() })))
    else await upload.complete(held.join())
    return bytes
  } catch (error) {
    await upload?.abort()
    throw error
  }
}

class PartBuffer {
  bytes = 0
  private readonly pieces: Uint8Array[] = []

  add(piece: Uint8Array): void {
    this.bytes += piece.byteLength
    this.pieces.push(piece)
  }

  join(): Uint8Array {
    return Buffer.concat(this.pieces)
  }
}

class MultipartUpload {
  private readonly client: S3Client
  private readonly upload: ObjectName & { UploadId: string | undefined }
  private readonly parts: { ETag: string | undefined; PartNumber: number }[] = []

  private constructor(client: S3Client, upload: MultipartUpload['upload']) {
    this.client = client
    this.upload = upload
  }

  static async begin(client: S3Client, object: ObjectName): Promise<MultipartUpload> {
    const { UploadId } = await guarded(() => client.send(new CreateMultipartUploadCommand(object)))
    return new MultipartUpload(client, { ...object, UploadId })
  }

  async add(Body: Uint8Array): Promise<void> {
    const PartNumber = this.parts.length + 1
    const part = new UploadPartCommand({ ...this.upload, PartNumber, Body })
    const { ETag } = await guarded(() => this.client.send(part))
    this.parts.push({ ETag, PartNumber })
  }

  async complete(last: Uint8Array): Promise<void> {
    if (last.byteLength > 0) await this.add(last)
    const complete = new CompleteMultipartUploadCommand({ ...this.upload, MultipartUpload: { Parts: this.parts } })
    await guarded(() => this.client.send(complete))
  }

  /** An upload that cannot be aborted is nobody's file: the bucket's own rule for incomplete uploads removes it. */
  async abort(): Promise<void> {
    await this.client.send(new AbortMultipartUploadCommand(this.upload)).catch(() => undefined)
  }
}

async function* list(client: S3Client, bucket: string, prefix: string, keyPrefix: string): AsyncGenerator<ListedFile> {
  let after: string | undefined
  do {
    const asked = new ListObjectsV2Command({ Bucket: bucket, Prefix: prefix + keyPrefix, ContinuationToken: after })
    const page = await guarded(() => client.send(asked))
    for (const { Key = '', Size = 0, LastModified } of page.Contents ?? [])
      yield { key: Key.slice(prefix.length), bytes: Size, putAt: LastModified?.getTime() ?? 0 }
    after = page.NextContinuationToken
  } while (after !== undefined)
}

/** Ends the connection also when nobody begins to read. The reader's time for a piece does not count. */
const bodyPieces = (body: Readable, timeoutMs: number): AsyncIterable<Uint8Array> => ({
  [Symbol.asyncIterator]: () => {
    const reading = pieces(body)
    return {
      next: () => {
        const timeout = setTimeout(() => body.destroy(new Error(`no bytes for ${timeoutMs} ms`)), timeoutMs)
        return reading.next().finally(() => clearTimeout(timeout))
      },
      return: () => {
        body.destroy()
        return reading.return(undefined)
      },
    }
  },
})

async function* pieces(stream: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  try {
    yield* stream
  } catch (error) {
    throw failureOf(error)
  }
}

/** The range begins behind the end of the object. */
const BEHIND_END = 'behind its end'

const unlessAbsent = async <Result>(work: Promise<Result>): Promise<Result | undefined | typeof BEHIND_END> => {
  try {
    return await work
  } catch (error) {
    const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } }
    if (name === 'InvalidRange' || $metadata?.httpStatusCode === 416) return BEHIND_END
    if (name === 'NoSuchKey' || name === 'NotFound') return undefined
    throw error
  }
}

const guarded = async <Result>(work: () => Promise<Result>): Promise<Result> => {
  try {
    return await work()
  } catch (error) {
    throw failureOf(error)
  }
}

const failureOf = (error: unknown): Failure =>
  error instanceof Failure ? error : new Failure('engine_down', { cause: error, retryAfterSeconds: 5 })
