import type { EventLog } from '../../engines/event-log.ts'
import { Failure } from '../../kernel/errors.ts'
import type { EventMetadata } from '../../kernel/event.ts'
import type { IdSource, Wrote } from '../../kit/route.ts'
import { GEOFENCE_CREATED, geofenceStream } from './events.ts'
import type { ImportStep, RejectedFeature } from './import-features.ts'
import { DeadlinePassed, type ShapeChecker } from './shape-checker.ts'

export interface GeofenceImport {
  bytes: Uint8Array
  nameProperty: string
  organizationId: string
  geofenceGroupId: string
  now: number
  ids: IdSource
  metadata: EventMetadata
  signal: AbortSignal
}

export interface ImportResult {
  created: number
  rejected: RejectedFeature[]
  wrote?: Wrote
}

const IDS_PER_STEP = 100
const APPENDS_AT_ONCE = 32
const OPEN_DEADLINE_MS = 60_000
const STEP_DEADLINE_MS = 5_000
/** Features that may take too long before the file is given up. */
const SKIPS_MAX = 10
const COPY_BYTES = 1024 * 1024

/**
 * Makes a geofence of each good feature of a file. Read and checked in the worker, step by step, so that others get
 * their turn; a feature whose check takes too long is rejected, and the rest goes on. Ids follow from the request, so a
 * repeated one makes the same geofences.
 * @throws Failure invalid for a file that is no FeatureCollection, overloaded, engine_down.
 */
export const importGeofences = async (log: Pick<EventLog, 'append'>, shapes: ShapeChecker, request: GeofenceImport): Promise<ImportResult> => {
  const result: ImportResult = { created: 0, rejected: [] }
  const bytes = await shared(request.bytes)
  const progress = new SharedArrayBuffer(4)
  const skip: number[] = []
  let next = 0
  let spare: string[] = []
  for (let total = Number.POSITIVE_INFINITY; next < total; ) {
    const { nameProperty, organizationId, geofenceGroupId, now } = request
    const { features, run, close } = await open(shapes, { bytes, nameProperty, organizationId, geofenceGroupId, at: now, from: next, skip, progress })
    total = features
    try {
      while (next < total) {
        if (request.signal.aborted) throw new Failure('invalid', { message: 'The client has gone.' })
        while (spare.length < IDS_PER_STEP) spare.push(request.ids.next())
        const step = await run(spare)
        spare = spare.slice(step.created.length)
        await append(log, step, request, result)
        result.rejected.push(...step.rejected)
        next = step.next
      }
      await close()
    } catch (error) {
      if (!(error instanceof DeadlinePassed) || skip.length >= SKIPS_MAX) throw error
      skip.push(Atomics.load(new Int32Array(progress), 0))
    }
  }
  return result
}

interface Opened {
  features: number
  run(ids: string[]): Promise<ImportStep>
  close(): Promise<void>
}

const open = async (shapes: ShapeChecker, request: Parameters<typeof openJob>[0]): Promise<Opened> => {
  const answer = await shapes.run(openJob(request), OPEN_DEADLINE_MS).catch((error: unknown) => {
    if (error instanceof Failure) throw error
    throw new Failure('invalid', { message: 'The file takes too much time or memory to read; split it.', cause: error })
  })
  if (!('opened' in answer)) throw new Error('the worker answered something else')
  if ('error' in answer.opened) throw new Failure('invalid', { message: answer.opened.error })
  const opened = answer.opened
  return {
    features: opened.features,
    run: async (ids) => {
      const step = await shapes.run({ kind: 'next', import: opened.import, ids }, STEP_DEADLINE_MS)
      if (!('step' in step)) throw new Error('the worker answered something else')
      return step.step
    },
    close: async () => {
      await shapes.run({ kind: 'close', import: opened.import })
    },
  }
}

const openJob = (request: Omit<Parameters<ShapeChecker['run']>[0] & { kind: 'open' }, 'kind'>) => ({ kind: 'open' as const, ...request })

const append = async (log: Pick<EventLog, 'append'>, step: ImportStep, { ids, metadata }: GeofenceImport, result: ImportResult): Promise<void> => {
  const events = step.created.map(({ geofenceId, data }) => ({ geofenceId, event: { id: ids.next(), type: GEOFENCE_CREATED, data, isJson: true, metadata } }))
  for (let from = 0; from < events.length; from += APPENDS_AT_ONCE) {
    const page = events.slice(from, from + APPENDS_AT_ONCE)
    const positions = await Promise.all(page.map(async ({ geofenceId, event }) => (await log.append(geofenceStream(geofenceId), [event], 'none')).position))
    result.created += page.length
    result.wrote = { position: Math.max(result.wrote?.position ?? -1, ...positions), types: [GEOFENCE_CREATED] }
  }
}

/** A copy that the worker reads too, made bit by bit. */
const shared = async (bytes: Uint8Array): Promise<SharedArrayBuffer> => {
  const copy = new SharedArrayBuffer(bytes.byteLength)
  for (let from = 0; from < bytes.byteLength; from += COPY_BYTES) {
    new Uint8Array(copy, from).set(bytes.subarray(from, from + COPY_BYTES))
    await new Promise((resume) => setImmediate(resume))
  }
  return copy
}
