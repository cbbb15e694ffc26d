import { join } from 'node:path'
import type { Test } from 'tap'
import { openGappedLog } from './gapped-log.ts'
import { writeHere } from './write-here.ts'
import { openFileFolder } from '../../src/engines/file-folder/file-folder.ts'
import { openLmdbTableStore } from '../../src/engines/lmdb-tables/lmdb-tables.ts'
import type { EventLog } from '../../src/engines/event-log.ts'
import type { FileStore } from '../../src/engines/file-store.ts'
import type { TableStore } from '../../src/engines/table-store.ts'
import type { Clock } from '../../src/kernel/clock.ts'
import type { Logger } from '../../src/kernel/logger.ts'
import { Checkpoints, settling } from '../../src/kit/consumers/settle.ts'
import { openKeyring } from '../../src/kit/keys/keyring-file.ts'
import type { Keyring } from '../../src/kit/keys/keyring.ts'
import type { Projection } from '../../src/kit/consumers/projection.ts'
import { ResourceSet } from '../../src/kit/resource/resource-set.ts'
import { SoleOwner } from '../../src/kit/consumers/owners.ts'
import { rebuildProjection, type RebuildReport } from '../../src/kit/consumers/rebuild-projection.ts'
import { RunningProjection } from '../../src/kit/consumers/run-projection.ts'
import type { ResourceDeclaration } from '../../src/kit/resource/declaration.ts'
import { ProcessRunner } from '../../src/processes/runner.ts'
import { FakeClock } from './fake-clock.ts'

export interface TestServices {
  log: EventLog
  tables: TableStore
  checkpoints: Checkpoints
  files: FileStore
  clock: Clock
  keyring: Keyring
  logger: Logger
  /** Lines of warnings and errors. */
  lines: { level: string; msg: string; fields?: object }[]
  /** Started by tests that need it: see `processesOf`. */
  processes: ProcessRunner
  /** Those that the test gives. */
  resources: ResourceSet
}

/** Where a test gives none, what asks for one fails: no reference goes unchecked, and the product need not be loaded. */
const NONE_GIVEN = new Proxy({} as ResourceSet, {
  get: (_, name) => {
    throw new Error(`openServices was given no resources, and was asked for their ${String(name)}`)
  },
})

/** The embedded engines in a folder, with a clock that the test holds. */
export const openServices = async <C extends Clock = FakeClock>(
  folder: string,
  clock: C = new FakeClock() as unknown as C,
  own?: readonly { declaration: ResourceDeclaration }[],
): Promise<TestServices & { clock: C; close(): Promise<void> }> => {
  const log = await openGappedLog({ path: join(folder, 'log'), clock })
  const store = await openLmdbTableStore({ path: join(folder, 'tables'), clock, startWriter: writeHere })
  const checkpoints = new Checkpoints(store, clock)
  const { tables } = checkpoints
  const keyring = await openKeyring(join(folder, 'keys.json'))
  const files = await openFileFolder(join(folder, 'files'))
  const lines: TestServices['lines'] = []
  const note = (level: string) => (msg: string, fields?: object) => void lines.push({ level, msg, fields })
  const logger = { debug: () => undefined, info: () => undefined, warn: note('warn'), error: note('error') }
  const close = async (): Promise<void> => {
    await log.close()
    await tables.close()
  }
  return {
    log,
    tables,
    checkpoints,
    processes: new ProcessRunner({ log, tables, clock, logger }),
    files,
    clock,
    keyring,
    logger,
    lines,
    resources: own === undefined ? NONE_GIVEN : new ResourceSet(own),
    close,
  }
}

/** Runs projections, and answers what lets a call wait for what follows it. */
export const startProjections = async (services: TestServices, projections: readonly Projection[]) => {
  const runner = await runProjections(services, projections)
  await runner.ready()
  return { runner, settle: settling(services, projections) }
}

/** Runs projections as the process that owns them. */
export const runProjections = async (
  services: Pick<TestServices, 'log' | 'tables' | 'clock' | 'logger'>,
  projections: readonly Projection[],
) => {
  const owners = new SoleOwner(services)
  const running = projections.map((projection) => new RunningProjection(projection, services))
  const joined = await owners.join(running)
  return {
    ready: async () => void (await Promise.all(running.map((one) => one.ready()))),
    lags: () => running.flatMap((one) => one.lags()),
    rebuild: (name: string): Promise<RebuildReport> => {
      const projection = projections.find((one) => one.name === name) as Projection
      return rebuildProjection(projection, { ...services, owners }, new AbortController().signal)
    },
    close: () => joined.leave(),
  }
}

/** A logger whose errors are kept. */
export const keepErrors = (errors: unknown[]): Logger => ({
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: (_msg, fields) => void errors.push(fields),
})

/** A logger whose errors fail the test. */
export const failOnErrors = (t: Test): Logger => ({
  ...keepErrors([]),
  error: (msg, fields) => void t.fail(`${msg} ${JSON.stringify(fields)}`),
})
