import { existsSync, statSync } from 'node:fs'
import { join } from 'node:path'
import type { Config } from '../../config.ts'
import { isEmbedded, shownUrl } from '../../engine-urls.ts'
import { childrenOf } from '../../engines/file-modes.ts'
import type { Clock } from '../../kernel/clock.ts'
import { idSource } from '../../kit/commands/ids.ts'
import { openFiles, openHistory, openLog, openMailer, openTables } from '../../open-engines.ts'
import type { Finding } from './findings.ts'
import { type Tried, tryFiles, tryHistory, tryLog, tryTables } from './try-engine.ts'

export interface EngineServices {
  config: Config
  clock: Clock
  /** Per engine, ms. */
  deadlineMs: number
  /** Whether a service, or another process, uses the data folder and so its embedded engines. */
  isInUse: boolean
}

const SKEW_MS_MAX = 1_000

interface Checked {
  area: string
  /** Printable form. */
  shown: string
  isEmbedded: boolean
  /** Its folder, if it is embedded and has its own. */
  folder?: string
  try(): Promise<Tried>
}

interface Opened {
  close(): Promise<void>
}

export interface EngineFindings {
  findings: Finding[]
  /** Whether a service was ever started on the log; true if unknown. */
  hasLog: boolean
}

/**
 * Opens every engine of the configuration, writes to it and reads back, all concurrently; an engine that hangs is
 * abandoned at the deadline. Without a data folder, only servers are tried: nothing is created.
 */
export const engineFindings = async (services: EngineServices): Promise<EngineFindings> => {
  const { config, clock } = services
  const ids = idSource(clock.now())
  const newId = (): string => ids.next()
  const own = { clock, newId }
  const { dataPath, logUrl, tablesUrl, historyUrl, filesUrl, smtpUrl } = config
  const of = (area: string, url: string, open: () => Promise<Tried>): Checked => ({
    area,
    isEmbedded: isEmbedded(url),
    shown: isEmbedded(url) && !url.startsWith('file:') ? `${url} ${join(dataPath, area)}` : shownUrl(url),
    ...(isEmbedded(url) && !url.startsWith('file:') && { folder: join(dataPath, area) }),
    try: open,
  })
  const checked: Checked[] = [
    of('log', logUrl, () => using(openLog(config, clock, newId), (log) => tryLog(log, own))),
    of('tables', tablesUrl, () => using(openTables(config, clock), (tables) => tryTables(tables, own))),
    of('history', historyUrl, () => using(openHistory(config), (history) => tryHistory(history, own))),
    of('files', filesUrl, () => using(openFiles(config, { isGuest: true }), (files) => tryFiles(files, own))),
    of('mail', smtpUrl, () =>
      using(openMailer(config, clock), async (mailer) => {
        const begun = clock.monotonic()
        await mailer.check()
        return { settings: [], latencyMs: clock.monotonic() - begun }
      }),
    ),
  ]
  const possible = existsSync(dataPath) ? checked : checked.filter(({ isEmbedded }) => !isEmbedded)
  const found = await Promise.all(possible.map((one) => findingsOf(services, one)))
  return {
    findings: found.flatMap(({ findings }) => findings),
    hasLog: found[possible.findIndex(({ area }) => area === 'log')]?.hasLog ?? false,
  }
}

const findingsOf = async (services: EngineServices, checked: Checked): Promise<EngineFindings> => {
  const { area, shown, folder } = checked
  const only = (finding: Finding, hasLog = true): EngineFindings => ({ findings: [finding], hasLog })
  if (folder !== undefined && !existsSync(folder))
    return only({ area, ok: true, what: `${area} (${shown}) is not there yet: the first start creates it` }, false)
  if (folder !== undefined && services.isInUse) {
    const size = `${(sizeOf(folder) / 2 ** 20).toFixed(0)} MiB`
    const what = `${area} (${shown}, ${size}) is open in the running process, which reports on it above`
    return only({ area, ok: true, what })
  }
  try {
    return await triedFindings(services, checked)
  } catch (error) {
    const reason = (error as Error).message.replace(/^--\w+ \S+ (does not answer|cannot be used): /, '')
    return only({ area, ok: false, what: `${area} (${shown}) cannot be used: ${reason}`, advice: adviceFor(checked) })
  }
}

const triedFindings = async ({ clock, deadlineMs }: EngineServices, checked: Checked): Promise<EngineFindings> => {
  const { area, shown } = checked
  const asked = clock.now()
  const { version, now, latencyMs, settings, hasBegun } = await inTime(checked.try(), clock, deadlineMs)
  const findings: Finding[] = [
    {
      area,
      ok: true,
      what: `${area} (${shown}) answers in ${latencyMs.toFixed(1)} ms${area === 'mail' ? '' : ', keeps what is written'}${version === undefined ? '' : `, version ${version}`}`,
    },
  ]
  if (now !== undefined) {
    // It was read at some point in between.
    const skewMs = Math.max(0, asked - now, now - clock.now())
    findings.push({
      area,
      ok: skewMs <= SKEW_MS_MAX,
      what: `${area}: its clock and this machine's ${skewMs < 1 ? 'agree' : `differ by ${(skewMs / 1000).toFixed(1)} s`}`,
      advice: 'synchronize both with NTP: times of events, expiry, and tokens depend on them',
    })
  }
  for (const { name, value, isGood, advice } of settings)
    findings.push({
      area,
      ok: value === undefined ? undefined : isGood,
      what: `${area}: ${name} ${value === undefined ? 'cannot be read from here' : `is ${value}`}`,
      advice,
    })
  return { findings, hasLog: hasBegun ?? true }
}

const adviceFor = ({ area, folder }: Checked): string => {
  if (folder !== undefined) return `check that its disk has room, and that no other process uses ${folder}`
  if (area === 'mail') return 'see docs/mail.md: host, port, user and password are in --smtp'
  if (area === 'files') return 'check that the folder exists and is writable, or check the bucket and its credentials'
  return 'check that the server runs, that this machine reaches it, and that user and password are right; what still works: docs/runbooks.md'
}

/** @throws Error if it takes longer; hanging work is abandoned, and ends with the process. */
const inTime = <Result>(work: Promise<Result>, clock: Clock, deadlineMs: number): Promise<Result> =>
  new Promise((resolve, reject) => {
    const cancel = clock.after(deadlineMs, () => reject(new Error(`no answer within ${deadlineMs / 1000} s`)))
    work.then(resolve, reject).finally(cancel)
  })

const using = async <Engine extends Opened, Result>(
  opening: Promise<Engine>,
  use: (engine: Engine) => Promise<Result>,
): Promise<Result> => {
  const engine = await opening
  try {
    return await use(engine)
  } finally {
    await engine.close()
  }
}

/** Bytes of the files of a folder that is in use: they may be deleted meanwhile, as merged parts of a table are. */
const sizeOf = (folder: string): number =>
  childrenOf(folder).reduce((bytes, entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return bytes + sizeOf(path)
    return entry.isFile() ? bytes + (statSync(path, { throwIfNoEntry: false })?.size ?? 0) : bytes
  }, 0)
