import type { Readable } from 'node:stream'
import { Failure, invalid } from '../../kernel/errors.ts'
import { brokenForm, openForm, strangeField } from './multipart.ts'

/** Fields of a form with one file. */
export interface StreamedFormShape {
  fields: readonly string[]
  /** The name of the field that holds the file. */
  file: string
}

export interface StreamedForm<Stored> {
  fields: { [name: string]: string }
  /** Result of storing the file; undefined where the form had none. */
  stored: Stored | undefined
}

/** Destination of the file of a form. */
export interface FileSink<Stored> {
  /** Reads the file as it comes. A client that goes away makes the source throw. */
  store(name: string, source: AsyncIterable<Uint8Array>): Promise<Stored>
  /** The form turned out to be wrong after the file. */
  discard(stored: Stored): Promise<void>
}

/**
 * Reads a multipart/form-data body as a stream, no faster than its file is stored; it holds only a few pieces. Rejects
 * with nothing left behind.
 * @throws Failure invalid with the name of the field; the failure of storing or of the body
 */
export const readStreamedForm = async <Stored>(
  contentType: string | undefined,
  body: AsyncIterable<Uint8Array>,
  shape: StreamedFormShape,
  sink: FileSink<Stored>,
): Promise<StreamedForm<Stored>> => {
  const form = new FormReader(contentType, shape, sink)
  try {
    for await (const piece of body) await form.write(piece)
    return await form.end()
  } catch (error) {
    await form.abandon(error)
    throw error
  }
}

class FormReader<Stored> {
  private readonly form: ReturnType<typeof openForm>
  private readonly sink: FileSink<Stored>
  private readonly fields: { [name: string]: string } = {}
  private readonly files: Readable[] = []
  private readonly finished: Promise<void>
  private readonly failed: Promise<never>
  private fail: (error: unknown) => void = () => undefined
  private storing: Promise<Stored> | undefined

  constructor(contentType: string | undefined, { fields, file: fileField }: StreamedFormShape, sink: FileSink<Stored>) {
    this.sink = sink
    // The sink limits the size of the file.
    const limits = { fields, files: { [fileField]: 1 }, fileBytesMax: Number.MAX_SAFE_INTEGER }
    this.form = openForm(contentType, limits)
    this.failed = new Promise((_, reject) => (this.fail = reject))
    this.failed.catch(() => undefined)
    this.finished = new Promise((resolve) => void this.form.on('finish', resolve))
    this.form.on('error', () => this.fail(brokenForm()))
    this.form.on('field', (name, value, isNameCut, isCut) => {
      if (isNameCut || !fields.includes(name)) this.fail(strangeField(name, limits))
      else if (isCut) this.fail(invalid(`/${name}`, 'is too long'))
      else if (Object.hasOwn(this.fields, name)) this.fail(invalid(`/${name}`, 'must be sent once'))
      this.fields[name] = value
    })
    this.form.on('file', (field, stream, name) => {
      this.files.push(stream as Readable)
      stream.on('error', () => this.fail(brokenForm()))
      if (field !== fileField) return this.fail(invalid(`/${field}`, 'is not a known file'))
      if (this.storing !== undefined) return this.fail(invalid(`/${field}`, 'must be sent once'))
      // A reader that stops gives its reason; the stream must not fail before.
      this.storing = sink.store(name ?? '', (stream as Readable).iterator({ destroyOnReturn: false }))
      this.storing.catch(this.fail)
    })
    for (const limit of ['partsLimit', 'filesLimit', 'fieldsLimit'] as const)
      this.form.on(limit, () => this.fail(new Failure('invalid', { message: 'The form has too many parts.' })))
  }

  /** Resolves when the form can take more; it waits while nobody reads the file. */
  async write(piece: Uint8Array): Promise<void> {
    await Promise.race([this.failed, new Promise<void>((resolve) => this.form.write(piece, () => resolve()))])
  }

  async end(): Promise<StreamedForm<Stored>> {
    this.form.end()
    await Promise.race([this.failed, this.finished])
    const stored = await this.storing
    // The content of the last piece.
    await Promise.race([this.failed, Promise.resolve()])
    return { fields: this.fields, stored }
  }

  async abandon(error: unknown): Promise<void> {
    const reason = error instanceof Error ? error : brokenForm()
    for (const file of this.files) file.destroy(reason)
    const stored = await this.storing?.catch(() => undefined)
    if (stored !== undefined) await this.sink.discard(stored)
  }
}
