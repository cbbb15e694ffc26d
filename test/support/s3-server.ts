import { randomUUID } from 'node:crypto'
import { createRequire } from 'node:module'
import type { AddressInfo } from 'node:net'
import type { Test } from 'tap'
import { openS3Files } from '../../src/engines/s3-files/s3-files.ts'
import { folderOf } from './folder-of.ts'
import { freePort } from './free-port.ts'

/** A server that speaks the protocol of S3, over a folder; the package has no types. */
interface S3Server {
  run(): Promise<AddressInfo>
  close(): Promise<void>
}

const S3rver = createRequire(import.meta.url)('s3rver') as new (options: object) => S3Server

/** The only user that the server has; its secret is the same. */
const USER = 'S3RVER'

const serve = async (directory: string, port: number): Promise<S3Server> => {
  const configureBuckets = [{ name: 'bucket', configs: [] }]
  const server = new S3rver({ port, address: '127.0.0.1', silent: true, directory, configureBuckets })
  await server.run()
  return server
}

/** Files of such a server; it ends with the test. */
export const openS3OfTest = async (t: Test) => {
  const directory = `${folderOf(t)}/s3`
  const port = await freePort()
  let server = await serve(directory, port)
  const url = `s3://bucket/${randomUUID()}?endpoint=http://127.0.0.1:${port}`
  const store = await openS3Files({ url, credentials: { accessKeyId: USER, secretAccessKey: USER } })
  t.teardown(async () => {
    await store.close()
    await server.close()
  })
  return {
    store,
    /** For `--files` of a service, with these credentials in its environment. */
    url,
    environment: { AWS_ACCESS_KEY_ID: USER, AWS_SECRET_ACCESS_KEY: USER },
    breakIt: async () => {
      await server.close()
      return async () => {
        server = await serve(directory, port)
      }
    },
  }
}
