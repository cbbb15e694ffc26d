import { closeSync, openSync, readSync, writeFileSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Preloaded into a service (`--import`): writes to the file `$LOOP_TURNS.<pid>` the turns of the event loop that
 * blocked it for long, by processor time of the main thread, so that other load on the machine changes nothing. A line
 * is the end of the turn, ms since the epoch, and its length, ms.
 */
const TOLD_FROM_MS = 5
const EVERY_MS = 1
const TELL_MS = 200

const begin = (path: string): void => {
  const file = openSync(`/proc/self/task/${process.pid}/schedstat`, 'r')
  process.once('exit', () => closeSync(file))
  const text = Buffer.alloc(64)
  const spentMs = (): number => {
    const length = readSync(file, text, 0, text.length, 0)
    return Number(text.toString('latin1', 0, length).split(' ', 1)[0]) / 1e6
  }
  let before = spentMs()
  let told = ''
  setInterval(() => {
    const now = spentMs()
    if (now - before >= TOLD_FROM_MS) told += `${Date.now()} ${(now - before).toFixed(2)}\n`
    before = now
  }, EVERY_MS).unref()
  setInterval(() => {
    if (told === '') return
    writeFileSync(`${path}.${process.pid}`, told, { flag: 'a' })
    told = ''
  }, TELL_MS).unref()
}

if (isMainThread && process.env.LOOP_TURNS !== undefined) begin(process.env.LOOP_TURNS)
