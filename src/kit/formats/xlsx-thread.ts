import { Worker } from 'node:worker_threads'
import type { TableWriter } from './table-writer.ts'
import type { XlsxAnswer, XlsxAsked } from './xlsx-request.ts'
import type { XlsxOptions } from './xlsx-writer.ts'

/**
 * A workbook that is written in a thread: loading the package alone would block this one for 0.25 s. All workbooks
 * share the thread, which starts with the first of them.
 */
export const xlsxInThread = (options: XlsxOptions): TableWriter => {
  const book = nextBook++
  const ask = async (asked: XlsxAsked): Promise<Uint8Array> => (thread ??= new XlsxThread()).ask(asked)
  return {
    start: () => ask({ book, kind: 'start', options }),
    rows: (rows) => ask({ book, kind: 'rows', rows }),
    end: () => ask({ book, kind: 'end' }),
    close: () => thread?.close(book),
  }
}

let nextBook = 0
let thread: XlsxThread | undefined

/** Each workbook has at most one open question. */
class XlsxThread {
  private readonly worker = new Worker(new URL('./xlsx-worker.js', import.meta.url))
  private readonly waiting = new Map<number, { resolve(bytes: Uint8Array): void; reject(error: unknown): void }>()

  constructor() {
    this.worker.unref()
    this.worker.on('message', (answer: XlsxAnswer) => {
      const asker = this.waiting.get(answer.book)
      this.leave(answer.book)
      if ('bytes' in answer) asker?.resolve(answer.bytes)
      else asker?.reject(answer.error)
    })
    this.worker.on('error', (error) => this.fail(error))
    this.worker.on('exit', () => this.fail(new Error('the thread that writes workbooks has ended')))
  }

  ask(asked: XlsxAsked): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.waiting.set(asked.book, { resolve, reject })
      this.worker.ref()
      this.worker.postMessage(asked)
    })
  }

  close(book: number): void {
    this.leave(book)
    this.worker.postMessage({ book, kind: 'close' } satisfies XlsxAsked)
  }

  /** An idle thread keeps no process alive. */
  private leave(book: number): void {
    this.waiting.delete(book)
    if (this.waiting.size === 0) this.worker.unref()
  }

  /** The next workbook gets a thread of its own again. */
  private fail(error: unknown): void {
    if (thread === this) thread = undefined
    for (const { reject } of this.waiting.values()) reject(error)
    this.waiting.clear()
  }
}
