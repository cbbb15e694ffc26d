import { parentPort } from 'node:worker_threads'
import { type ShapeError, validateShape } from '../../geo/validate-shape.ts'
import { type ImportRequest, type ImportStep, OpenImport } from './import-features.ts'

/** What the worker is asked, one at a time. */
export type ShapeJob =
  | { kind: 'validate'; shape: unknown }
  | ({ kind: 'open' } & ImportRequest)
  | { kind: 'next'; import: number; ids: string[] }
  | { kind: 'close'; import: number }

export type ShapeAnswer =
  | { error?: ShapeError }
  | { opened: { import: number; features: number } | { error: string } }
  | { step: ImportStep }
  | { closed: true }

const imports = new Map<number, OpenImport>()
let opened = 0

const answer = (job: ShapeJob): ShapeAnswer => {
  if (job.kind === 'validate') return { error: validateShape(job.shape) }
  if (job.kind === 'open') return { opened: open(job) }
  if (job.kind === 'close') {
    imports.delete(job.import)
    return { closed: true }
  }
  const reading = imports.get(job.import)
  if (reading === undefined) throw new Error(`no import ${job.import} is open`)
  return { step: reading.next(job.ids) }
}

const open = (request: ImportRequest): { import: number; features: number } | { error: string } => {
  const reading = OpenImport.of(request)
  if (typeof reading === 'string') return { error: reading }
  imports.set(++opened, reading)
  return { import: opened, features: reading.total }
}

parentPort?.on('message', (job: ShapeJob) => parentPort?.postMessage(answer(job)))

parentPort?.postMessage('ready')
