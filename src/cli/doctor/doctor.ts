import { existsSync, statfsSync, statSync } from 'node:fs'
import { durationMs } from '../../config-values.ts'
import type { ListenerState } from '../../features/devices/device-listeners.ts'
import type { BridgeState } from '../../features/devices/mqtt-bridge.ts'
import { ownerOfFolder } from '../../engines/data-folder.ts'
import { openToOthers } from '../../engines/file-modes.ts'
import { systemClock } from '../../kernel/system-clock.ts'
import { askControl, askRunning } from '../control-socket.ts'
import { parseOptions } from '../credentials.ts'
import { configOfFlags, flagOptions } from '../flags-given.ts'
import { print } from '../print.ts'
import { rotateKey } from '../rotate-key.ts'
import { bridgeFinding, listenerFinding } from './devices.ts'
import { engineFindings } from './engines.ts'
import { type Finding, findingsText, isWell } from './findings.ts'

const USAGE = `waymark doctor [flags of start] [--json] [--deadline 10s] [--forget <consumer>] [--rotate-token-key]
Checks this machine, the data folder, the service that runs on it, and every engine: response time, version, clock, schema,
whether data that was written can be read back, and the settings that decide whether data survives. Says what to do about
each problem; the exit code is then 1. Give it the flags of the service, such as --log and --tables.
--json prints {"ok": …, "findings": [{"area", "ok", "what", "advice"}]}; "ok" is null for what cannot be found out.
--deadline is how long it waits for each engine and for the service.
--forget removes a consumer that no longer exists and keeps the location log from being trimmed.
--rotate-token-key signs tokens with a new key from now on. Tokens signed with the previous key stay valid until they expire;
after --token-ttl that key leaves the keyring. If no service runs, give --keys and --token-ttl as the service has them.
`

/** Its own options; all others are flags of the service. */
const OWN = {
  json: { type: 'boolean' },
  deadline: { type: 'string' },
  forget: { type: 'string' },
  'rotate-token-key': { type: 'boolean' },
  help: { type: 'boolean' },
} as const
const DEADLINE = '10s'
const LEAVE_MS = 500

const FREE_BYTES_MIN = 1024 ** 3

/** `waymark doctor`: prints its findings; exits with 1 if something is wrong. */
export const doctorCommand = async (args: readonly string[]): Promise<number> => {
  const { values } = parseOptions(args, { ...flagOptions(), ...OWN })
  if (values.help) return print(USAGE)
  const config = configOfFlags(Object.fromEntries(Object.entries(values).filter(([name]) => !(name in OWN))))
  const { dataPath, keysPath } = config
  if (values.forget !== undefined) return forget(dataPath, values.forget as string)
  if (values['rotate-token-key']) return rotateKey(config)
  const deadlineMs = durationMs('deadline', (values.deadline as string | undefined) ?? DEADLINE)
  const isInUse = ownerOfFolder(dataPath) !== undefined
  const service = existsSync(dataPath) ? await serviceFindings(dataPath, deadlineMs) : []
  const engines = await engineFindings({ config, clock: systemClock, deadlineMs, isInUse })
  const findings = [
    ...machineFindings(dataPath),
    keyringFinding(keysPath, engines.hasLog),
    ...service,
    ...engines.findings,
  ]
  process.stdout.write(
    values.json
      ? `${JSON.stringify({ ok: isWell(findings), findings: findings.map(({ ok = null, ...rest }) => ({ ...rest, ok })) })}\n`
      : findingsText(findings),
  )
  const code = isWell(findings) ? 0 : 1
  // Work that hangs was abandoned and would keep the process alive.
  setTimeout(() => process.exit(code), LEAVE_MS).unref()
  return code
}

const machineFindings = (dataPath: string): Finding[] => {
  if (!existsSync(dataPath)) {
    const advice = 'name another one with --data, or start the service, which creates it'
    return [{ area: 'machine', ok: false, what: `data folder ${dataPath} does not exist`, advice }]
  }
  const { bavail, bsize } = statfsSync(dataPath)
  const free = bavail * bsize
  return [
    { area: 'machine', ok: true, what: `node ${process.version} on ${process.platform} ${process.arch}` },
    {
      area: 'machine',
      ok: free > FREE_BYTES_MIN,
      what: `${(free / 1024 ** 3).toFixed(1)} GiB free at ${dataPath}`,
      advice: 'free at least 1 GiB: while the disk is full, every write gets 503',
    },
    modesFinding(dataPath),
  ]
}

const modesFinding = (dataPath: string): Finding => {
  const open = openToOthers(dataPath)
  const who = open === undefined ? 'open to its owner alone' : `open to other users of this machine (${open})`
  const advice = `chmod -R go-rwx ${dataPath}; the next start does that too where it owns the folder`
  return { area: 'machine', ok: open === undefined, what: `data folder ${dataPath} is ${who}`, advice }
}

const keyringFinding = (keysPath: string, hasLog: boolean): Finding => {
  const area = 'keys'
  if (!existsSync(keysPath)) {
    if (!hasLog) return { area, ok: true, what: `keyring ${keysPath} is not there yet: the first start creates it` }
    const advice =
      'restore it from a copy, or name the right one with --keys; without it, tokens and secrets cannot be read'
    return { area, ok: false, what: `keyring ${keysPath} does not exist`, advice }
  }
  const isPrivate = (statSync(keysPath).mode & 0o077) === 0
  const what = `keyring ${keysPath} is ${isPrivate ? 'readable by its owner alone' : 'readable by others: chmod 600'}`
  return {
    area,
    ok: isPrivate,
    what,
    advice: `chmod 600 ${keysPath}, and rotate the token key if others use this machine`,
  }
}

const serviceFindings = async (dataPath: string, deadlineMs: number): Promise<Finding[]> => {
  const answer = await askControl(dataPath, { command: 'status' }, deadlineMs)
  const area = 'service'
  if (answer === undefined) return [{ area, ok: true, what: 'no service runs on this folder' }]
  if (!answer.ok) {
    const advice = 'look at its log; if it hangs, restart it: nothing that was acknowledged is lost'
    return [{ area, ok: false, what: `the service does not report its state: ${answer.error}`, advice }]
  }
  const {
    consumers,
    engines,
    listeners = [],
    bridges = [],
  } = answer.report as {
    listeners?: ListenerState[]
    bridges?: BridgeState[]
    consumers: { consumer: string; events: number; seconds: number }[]
    engines: { [engine: string]: boolean }
  }
  return [
    ...Object.entries(engines).map(([engine, up]) => ({
      area,
      ok: up,
      what: `engine ${engine} ${up ? 'answers' : 'does not answer'}`,
      advice: 'see docs/runbooks.md for what still works and what to do',
    })),
    ...consumers.map(({ consumer, events, seconds }) => ({
      area,
      ok: seconds < 60,
      what: `${consumer} is ${events} events and ${seconds.toFixed(1)} s behind`,
      advice: 'look for "consumer failed" in the log; if the consumer no longer exists, remove it with --forget',
    })),
    ...listeners.map(listenerFinding),
    ...bridges.map(bridgeFinding),
  ]
}

const forget = async (dataPath: string, name: string): Promise<number> => {
  await askRunning(dataPath, { command: 'forget', name })
  return print(`${name} no longer holds the location log back\n`)
}
