import { breathe } from '../../kernel/breath.ts'
import { Failure } from '../../kernel/errors.ts'
import type { EventMetadata } from '../../kernel/event.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { IdSource, Wrote } from '../../kit/http/route.ts'
import { severalAtOnce } from '../../kit/commands/several-at-once.ts'
import { withinQuotas } from '../../kit/quotas/quotas.ts'
import type { Services } from '../../kit/services.ts'
import { GEOFENCE_CREATED, geofenceStream } from './events.ts'
import type { CheckedFeature, ImportStep, RejectedFeature } from './import-features.ts'
import { DeadlinePassed, type ShapeChecker } from './shape-checker.ts'
import type { ShapeAnswer, ShapeJob } from './shape-worker.ts'
import { GEOFENCES, POSITIONS } from './views.ts'

export type ImportServices = Pick<Services, 'log' | 'quotas'>

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
  /** First rejections; `rejectedTotal` counts all. */
  rejected: RejectedFeature[]
  rejectedTotal: number
  wrote?: Wrote
}

const IDS_PER_STEP = 128
const APPENDS_AT_ONCE = 128
const OPEN_DEADLINE_MS = 60_000
const STEP_DEADLINE_MS = 5_000
/** Times that a file is reopened before the import fails. */
const REOPENS_MAX = 20
/** In a file: more than fit with a shape each would be millions without, which take the worker minutes to refuse. */
const FEATURES_MAX = 500_000
const COPY_BYTES = 1024 * 1024
/** Further ones are only counted: a file may have millions of invalid features. */
const REJECTED_MAX = 10_000

/**
 * Creates a geofence for each good feature of a file. The worker reads and checks step by step, so that others get
 * their turn; a feature whose check takes too long is rejected, and the rest continues. Ids follow from the request, so
 * a repeated one creates the same geofences. Features beyond the organization's quota are rejected with `quota`.
 * @throws Failure invalid for a file that is no FeatureCollection, overloaded, engine_down.
 */
export const importGeofences = (
  services: ImportServices,
  shapes: ShapeChecker,
  request: GeofenceImport,
): Promise<ImportResult> =>
  shapes.withImport(request.organizationId, async (number) => {
    const result: ImportResult = { created: 0, rejected: [], rejectedTotal: 0 }
    const { nameProperty, organizationId, geofenceGroupId, now: at } = request
    const file = {
      bytes: await shared(request.bytes),
      nameProperty,
      organizationId,
      geofenceGroupId,
      at,
      progress: new SharedArrayBuffer(4),
    }
    const skip: number[] = []
    const ids = new FeatureIds(request.ids)
    for (let next = 0, total = Number.POSITIVE_INFINITY, opened = 0; next < total; opened++) {
      // A caller past its deadline ends the worker: its imports are reopened and continue.
      if (opened > REOPENS_MAX)
        throw new Failure('invalid', { message: 'Too many features take too long to check; split the file.' })
      total = await open(shapes, { kind: 'open', import: number, ...file, from: next, skip })
      try {
        next = await take(services, shapes, request, result, { number, ids, from: next, total })
      } catch (error) {
        if (!(error instanceof DeadlinePassed)) throw error
        skip.push(Atomics.load(new Int32Array(file.progress), 0))
        next = result.created + result.rejectedTotal
      }
    }
    return result
  })

/**
 * Takes features until all are done, or the worker has lost the file; returns the first remaining one. The worker
 * checks the next ones while the previous ones are appended to the log.
 */
const take = async (
  services: ImportServices,
  shapes: ShapeChecker,
  request: GeofenceImport,
  result: ImportResult,
  { number, ids, from, total }: { number: number; ids: FeatureIds; from: number; total: number },
): Promise<number> => {
  const check = (next: number): Promise<ShapeAnswer> | undefined => {
    if (next >= total) return undefined
    if (request.signal.aborted) throw new Failure('invalid', { message: 'The client has gone.' })
    const checking = shapes.run(
      request.organizationId,
      { kind: 'next', import: number, ids: ids.from(next) },
      STEP_DEADLINE_MS,
    )
    checking.catch(() => undefined) // reported where it is awaited, after the previous features are in the log
    return checking
  }
  let next = from
  for (let checking = check(next); checking !== undefined; ) {
    const answer = await checking
    if (!('step' in answer)) throw new Error('the worker answered something else')
    if (answer.step === 'lost') return next
    next = answer.step.next
    checking = check(next)
    await append(services, answer.step, request, result)
  }
  return next
}

/** One id for each feature in order, good or not: however often a file is read, its features have the same ids. */
class FeatureIds {
  private readonly source: IdSource
  private first = 0
  private ids: string[] = []

  constructor(source: IdSource) {
    this.source = source
  }

  /** Ids of features from that index on; earlier ones are not requested again. */
  from(index: number): string[] {
    this.ids = this.ids.slice(index - this.first)
    this.first = index
    while (this.ids.length < IDS_PER_STEP) this.ids.push(this.source.next())
    return this.ids
  }
}

/** Opens the file and returns its number of features. */
const open = async (shapes: ShapeChecker, job: ShapeJob & { kind: 'open' }): Promise<number> => {
  const answer = await shapes.run(job.organizationId, job, OPEN_DEADLINE_MS).catch((error: unknown) => {
    if (error instanceof Failure) throw error
    throw new Failure('invalid', { message: 'The file takes too much time or memory to read; split it.', cause: error })
  })
  if (!('opened' in answer)) throw new Error('the worker answered something else')
  if ('error' in answer.opened) throw new Failure('invalid', { message: answer.opened.error })
  const { features } = answer.opened
  if (features > FEATURES_MAX)
    throw new Failure('invalid', { message: `A file may have ${FEATURES_MAX} features; split it.` })
  return features
}

const append = async (
  services: ImportServices,
  { created, rejected }: ImportStep,
  request: GeofenceImport,
  result: ImportResult,
): Promise<void> => {
  await severalAtOnce(created, APPENDS_AT_ONCE, async (feature) => {
    const { position, message = '' } = await appendOne(services, feature, request)
    if (position === undefined) return void rejected.push({ index: feature.index, code: 'quota', message })
    result.created++
    result.wrote = { position: Math.max(result.wrote?.position ?? -1, position), types: [GEOFENCE_CREATED] }
  })
  rejected.sort((a, b) => a.index - b.index)
  result.rejectedTotal += rejected.length
  result.rejected.push(...rejected.slice(0, REJECTED_MAX - result.rejected.length))
}

/** Appends one geofence; returns its log position, or the reason why the quota excludes it. */
const appendOne = async (
  { log, quotas }: ImportServices,
  { geofenceId, data, positions }: CheckedFeature,
  { organizationId, metadata }: GeofenceImport,
): Promise<{ position?: number; message?: string }> => {
  const stream = geofenceStream(geofenceId)
  const event = { id: idFrom('imported', geofenceId), type: GEOFENCE_CREATED, data, isJson: true, metadata }
  try {
    const { wrote } = await withinQuotas(quotas, organizationId, async (takePlace) => {
      await takePlace(GEOFENCES.name)
      await takePlace(POSITIONS, positions)
      return { wrote: await log.append(stream, [event], 'none') }
    })
    return wrote
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'quota') throw error
    // An earlier try of the same request may have created it, and used up the quota.
    const [first] = await log.read(stream, 0, 1)
    return first?.id === event.id ? { position: first.position } : { message: error.message }
  }
}

/** Copies into memory that the worker shares, in chunks. */
const shared = async (bytes: Uint8Array): Promise<SharedArrayBuffer> => {
  const copy = new SharedArrayBuffer(bytes.byteLength)
  for (let from = 0; from < bytes.byteLength; from += COPY_BYTES) {
    await breathe()
    new Uint8Array(copy, from).set(bytes.subarray(from, from + COPY_BYTES))
  }
  return copy
}
