import { parentPort } from 'node:worker_threads'
import { type ShapeError, validateShape } from '../../geo/validate-shape.ts'
import { type ImportRequest, type ImportStep, OpenImport } from './import-features.ts'

/** Jobs of the worker, one at a time. */
export type ShapeJob =
  | { kind: 'validate'; shape: unknown }
  | ({ kind: 'open'; import: number } & ImportRequest)
  | { kind: 'next'; import: number; ids: string[] }
  | { kind: 'close'; import: number }

export type ShapeAnswer =
  | { error?: ShapeError }
  | { opened: { features: number } | { error: string } }
  /** Lost: the worker that held the import was ended. */
  | { step: ImportStep | 'lost' }
  | { closed: true }

const imports = new Map<number, OpenImport>()

const answer = (job: ShapeJob): ShapeAnswer => {
  if (job.kind === 'validate') return { error: validateShape(job.shape) }
  if (job.kind === 'open') return { opened: open(job) }
  if (job.kind === 'close') {
    imports.delete(job.import)
    return { closed: true }
  }
  const reading = imports.get(job.import)
  return { step: reading === undefined ? 'lost' : reading.next(job.ids) }
}

const open = (job: ShapeJob & { kind: 'open' }): { features: number } | { error: string } => {
  const reading = OpenImport.of(job)
  if (typeof reading === 'string') return { error: reading }
  imports.set(job.import, reading)
  return { features: reading.total }
}

parentPort?.on('message', (job: ShapeJob) => parentPort?.postMessage(answer(job)))

parentPort?.postMessage('ready')
