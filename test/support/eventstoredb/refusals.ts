import { Metadata, status } from '@grpc/grpc-js'

export const accessDenied = (): { code: number; details: string; metadata: Metadata } => {
  const metadata = new Metadata()
  metadata.set('exception', 'access-denied')
  return { code: status.PERMISSION_DENIED, details: 'Access Denied', metadata }
}

export const appendTooLarge = (bytesMax: number): { code: number; details: string; metadata: Metadata } => {
  const metadata = new Metadata()
  metadata.set('exception', 'maximum-append-size-exceeded')
  metadata.set('maximum-append-size', String(bytesMax))
  return { code: status.INVALID_ARGUMENT, details: 'Maximum Append Size Exceeded', metadata }
}
