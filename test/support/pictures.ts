/** The first bytes of a PNG, which say what it is and how large. */
export const png = (width = 16, height = 16): Buffer => {
  const bytes = Buffer.alloc(64)
  Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex').copy(bytes)
  bytes.writeUInt32BE(width, 16)
  bytes.writeUInt32BE(height, 20)
  return bytes
}

/** The bytes of a form, and their content type. */
export const formOf = async (form: FormData): Promise<{ body: Buffer; headers: { [name: string]: string } }> => {
  const request = new Request('http://form', { method: 'POST', body: form })
  const body = Buffer.from(await request.arrayBuffer())
  return { body, headers: { 'content-type': request.headers.get('content-type') ?? '' } }
}

export const textOf = async (stream: AsyncIterable<Uint8Array | string> | undefined): Promise<string> => {
  const pieces: Buffer[] = []
  for await (const piece of stream ?? []) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces).toString()
}
