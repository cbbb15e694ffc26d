import { timingSafeEqual } from 'node:crypto'
import type { Keyring } from '../../kit/keys/keyring.ts'

interface MadeFile {
  _id: string
  organizationId: string
  /** Time at which it was created. */
  updatedAt: number
}

const DOWNLOAD_MS = 7 * 86_400_000

export const expiresAt = ({ updatedAt }: Pick<MadeFile, 'updatedAt'>): number => updatedAt + DOWNLOAD_MS

const signature = (keyring: Keyring, exportId: string, expires: number): string =>
  keyring.hmac('export-download', `${exportId}|${expires}`).toString('base64url')

/** Path that grants the download without a token. */
export const downloadPath = (keyring: Keyring, row: MadeFile): string => {
  const expires = expiresAt(row)
  return `/api/v3/export-file/${row._id}?organization=${row.organizationId}&expires=${expires}&signature=${signature(keyring, row._id, expires)}`
}

/** Whether a path was signed here and has not expired. */
export const isSigned = (
  keyring: Keyring,
  exportId: string,
  { expires, signature: said }: { expires: number; signature: string },
  now: number,
): boolean => {
  const [own, other] = [Buffer.from(signature(keyring, exportId, expires)), Buffer.from(said)]
  return expires > now && own.length === other.length && timingSafeEqual(own, other)
}
