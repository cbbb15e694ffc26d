import { parentPort, workerData } from 'node:worker_threads'
import type { Answer, JobMessage, WriterSettings } from './table-store.lmdb-jobs.ts'
import { openTableEnvironment } from './table-store.lmdb-layout.ts'
import { Misuse, TableWriter } from './table-store.lmdb-writer.ts'

/*
 * The thread that writes tables: index maintenance and the wait for the disk stay off the event loop that serves.
 * What arrives while a transaction runs goes with the next one.
 */
const GROUP_JOBS_MAX = 2_000
const GROUP_BYTES_MAX = 8 * 1024 * 1024

const port = parentPort
if (port === null) throw new Error('This file is the writer thread of the tables.')

const { path, bytesMax } = workerData as WriterSettings
const env = openTableEnvironment(path)
const writer = new TableWriter(env, bytesMax)
const waiting: JobMessage[] = []
let scheduled = false
let lastNow = 0
let mayClear = false

const answer = (message: Answer): void => port.postMessage(message)

const runGroup = (group: readonly JobMessage[]): void => {
  try {
    const results = writer.runAll(group)
    for (const [index, { no }] of group.entries()) answer({ no, result: results[index] })
  } catch (error) {
    if (group.length > 1) for (const message of group) runGroup([message])
    else answer({ no: (group[0] as JobMessage).no, error: String(error), isFault: error instanceof Misuse })
  }
}

const nextGroup = (): JobMessage[] => {
  let bytes = 0
  let jobs = 0
  for (const { job } of waiting) {
    if (jobs >= GROUP_JOBS_MAX || bytes >= GROUP_BYTES_MAX || job.kind === 'close') break
    if (job.kind === 'commit') for (const part of job.parts) bytes += part.byteLength
    jobs += 1
  }
  return waiting.splice(0, jobs)
}

const turn = (): void => {
  scheduled = false
  const group = nextGroup()
  if (group.length > 0) runGroup(group)
  if (waiting[0]?.job.kind === 'close') {
    const { no } = waiting[0]
    void env.root.close().then(() => {
      answer({ no, result: undefined })
      port.close()
    })
    return
  }
  if (waiting.length > 0 || sweepStep()) schedule()
}

// A full disk must not stop the thread: what cannot be swept now is swept after a later commit.
const sweepStep = (): boolean => {
  try {
    return writer.hasSweep(lastNow, mayClear) && writer.sweep(lastNow, mayClear)
  } catch (error) {
    answer({ no: 0, error: String(error), isFault: false })
    return false
  }
}

const schedule = (): void => {
  if (scheduled) return
  scheduled = true
  setImmediate(turn)
}

port.on('message', (message: JobMessage) => {
  waiting.push(message)
  lastNow = Math.max(lastNow, message.now)
  // Tables are cleared only once the store has said that it reads their successors.
  mayClear = message.job.kind === 'clear' ? true : mayClear && !replacesTables(message)
  schedule()
})

const replacesTables = ({ job }: JobMessage): boolean => job.kind === 'declare' || job.kind === 'promote' || job.kind === 'reset'

answer({ no: 0, result: { records: [] } })
