import { timingSafeEqual } from 'node:crypto'
import type { Keyring } from '../../kit/keys/keyring.ts'

interface MadeFile {
  /** Id of its export. */
  _id: string
  organizationId: string
  /** When it was made. */
  updatedAt: number
}

/** How long a file can be downloaded once it is made. */
const DOWNLOAD_MS = 7 * 86_400_000

export const expiresAt = ({ updatedAt }: Pick<MadeFile, 'updatedAt'>): number => updatedAt + DOWNLOAD_MS

const signature = (keyring: Keyring, exportId: string, expires: number): string =>
  keyring.hmac('export-download', `${exportId}|${expires}`).toString('base64url')

/** The path that stands for the right to download: whoever has it needs no token. */
export const downloadPath = (keyring: Keyring, row: MadeFile): string => {
  const expires = expiresAt(row)
  return `/api/v3/export-file/${row._id}?organization=${row.organizationId}&expires=${expires}&signature=${signature(keyring, row._id, expires)}`
}

/** Whether a path was signed here and has not run out. */
export const isSigned = (
  keyring: Keyring,
  exportId: string,
  { expires, signature: said }: { expires: number; signature: string },
  now: number,
): boolean => {
  const [own, other] = [Buffer.from(signature(keyring, exportId, expires)), Buffer.from(said)]
  return expires > now && own.length === other.length && timingSafeEqual(own, other)
}
