import { parentPort, workerData } from 'node:worker_threads'
import { systemClock } from '../../kernel/system-clock.ts'
import { DiskRoom } from '../disk-room.ts'
import { numberOf } from '../write-errors.ts'
import type { Answer, Job, JobMessage, WriterSettings } from './jobs.ts'
import { openTableEnvironment } from './layout.ts'
import { Misuse, TableWriter } from './writer.ts'

/*
 * The thread that writes tables: index maintenance and the wait for the disk stay off the serving event loop. Jobs that
 * arrive during a transaction go with the next one.
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
/** Whether the store has sent a message, and the number of jobs that replace tables that it has yet to confirm. */
let hasSaid = false
let replacing = 0
let isBroken = false

const answer = (message: Answer): void => port.postMessage(message)

const room = new DiskRoom({
  message: 'The tables cannot be written.',
  path,
  clock: systemClock,
  tryBytes: async (bytes) => {
    writer.tryBytes(bytes)
  },
  broken: (error) => {
    isBroken = true
    answer({ no: 0, broken: { code: numberOf(error), message: (error as Error).message } })
  },
})

const refuse = (messages: readonly JobMessage[], error: unknown): void => {
  for (const message of messages) {
    if (replacesTables(message)) replacing -= 1
    answer({ no: message.no, error: String(error), isFault: error instanceof Misuse })
  }
}

const runGroup = (group: readonly JobMessage[]): void => {
  const bytes = group.reduce((sum, { job }) => sum + bytesOf(job), 0)
  try {
    const results = writer.runAll(group)
    for (const [index, { no }] of group.entries()) answer({ no, result: results[index] })
  } catch (error) {
    if (isOfDisk(error)) {
      room.refused(error, bytes)
      refuse(group, error)
    } else if (group.length > 1) for (const message of group) runGroup([message])
    else refuse(group, error)
  }
}

/** Jobs for which the disk has no room are refused at once; a ping finds out whether it has room again. */
const takeGroup = (group: readonly JobMessage[]): void => {
  if (group.length === 0) return
  if (room.takes(group.reduce((sum, { job }) => sum + bytesOf(job), 0))) return runGroup(group)
  const others = group.filter(({ job }) => job.kind !== 'ping')
  refuse(others, room.failure())
  for (const ping of group.filter((message) => !others.includes(message)))
    void room.check().then(
      () => runGroup([ping]),
      (error: unknown) => refuse([ping], error),
    )
}

const bytesOf = (job: Job): number => {
  if (job.kind === 'putIfAbsent') return job.part.byteLength
  return job.kind === 'commit' ? job.parts.reduce((sum, { byteLength }) => sum + byteLength, 0) : 0
}

/** The driver gives its errors a number, those of this code have none. */
const isOfDisk = (error: unknown): boolean =>
  error instanceof Error && typeof (error as { code?: unknown }).code === 'number'

const nextGroup = (): JobMessage[] => {
  let bytes = 0
  let jobs = 0
  for (const { job } of waiting) {
    if (jobs >= GROUP_JOBS_MAX || bytes >= GROUP_BYTES_MAX || job.kind === 'close') break
    bytes += bytesOf(job)
    jobs += 1
  }
  return waiting.splice(0, jobs)
}

const turn = (): void => {
  scheduled = false
  if (isBroken) return
  takeGroup(nextGroup())
  if (waiting[0]?.job.kind === 'close') {
    const { no } = waiting[0]
    room.close()
    void env.root.close().then(() => {
      answer({ no, result: undefined })
      port.close()
    })
    return
  }
  if (waiting.length > 0 || (!room.isShort && sweepStep())) schedule()
}

// A full disk must not stop the thread: the rest is swept after a later commit.
const sweepStep = (): boolean => {
  // Tables are cleared only once the store has confirmed that it reads their successors, each of them.
  const mayClear = hasSaid && replacing === 0
  try {
    return writer.hasSweep(lastNow, mayClear) && writer.sweep(lastNow, mayClear)
  } catch (error) {
    if (isOfDisk(error)) room.refused(error, 0)
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
  if (replacesTables(message)) replacing += 1
  if (message.job.kind === 'clear') {
    hasSaid = true
    replacing = Math.max(0, replacing - 1)
  }
  schedule()
})

const replacesTables = ({ job }: JobMessage): boolean =>
  job.kind === 'declare' || job.kind === 'promote' || job.kind === 'reset'

answer({ no: 0, result: { records: writer.declared() } })
