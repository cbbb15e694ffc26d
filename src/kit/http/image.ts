import { Failure } from '../../kernel/errors.ts'

export const IMAGE_TYPES: { readonly [ending: string]: string } = {
  png: 'image/png',
  jpg: 'image/jpeg',
  webp: 'image/webp',
  gif: 'image/gif',
}

const SIDE_PIXELS_MAX = 8_192

/**
 * The type of a picture by its bytes, whatever the sender declares: an extension of `IMAGE_TYPES`.
 * @throws Failure unsupported_type
 */
export const imageEnding = async (bytes: Uint8Array): Promise<string> => {
  const { type = '', width, height } = await measured(bytes)
  if (!Object.hasOwn(IMAGE_TYPES, type)) throw unsupported()
  if (width > SIDE_PIXELS_MAX || height > SIDE_PIXELS_MAX)
    throw new Failure('too_large', { message: `The picture has a side of over ${SIDE_PIXELS_MAX} pixels.` })
  return type
}

const measured = async (bytes: Uint8Array) => {
  const { imageSize } = await import('image-size')
  try {
    return imageSize(bytes)
  } catch {
    // Not a picture that the library knows, or one that is cut short.
    throw unsupported()
  }
}

const unsupported = (): Failure =>
  new Failure('unsupported_type', { message: 'Send a picture: PNG, JPEG, WebP or GIF.' })
