import { EventEmitter } from 'node:events'
import { MessageChannel } from 'node:worker_threads'
import type { StartWriter, WriterEnd } from '../../src/engines/lmdb-tables/thread.ts'
import { WriterLoop } from '../../src/engines/lmdb-tables/writer-loop.ts'

/** Writes tables in the thread of the test, through the same messages: a thread for each test took more work than most tests. */
export const writeHere: StartWriter = (settings) => {
  const { port1, port2 } = new MessageChannel()
  const end = new EventEmitter()
  port1.on('message', (answer) => end.emit('message', answer))
  port1.on('close', () => end.emit('exit'))
  new WriterLoop(port2, settings)
  const postMessage: WriterEnd['postMessage'] = (message, transfer = []) => port1.postMessage(message, transfer)
  return Object.assign(end, { postMessage })
}
