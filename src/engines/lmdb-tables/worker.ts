import { parentPort, workerData } from 'node:worker_threads'
import type { WriterSettings } from './jobs.ts'
import { WriterLoop } from './writer-loop.ts'

/** The thread that writes tables: index maintenance and the wait for the disk stay off the serving event loop. */
if (parentPort === null) throw new Error('This file is the writer thread of the tables.')
new WriterLoop(parentPort, workerData as WriterSettings)
