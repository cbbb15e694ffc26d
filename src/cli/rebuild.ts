import { existsSync } from 'node:fs'
import { readConfig } from '../config.ts'
import { ConfigError } from '../config-values.ts'
import { isEmbedded } from '../engine-urls.ts'
import { createLogger } from '../kit/operations/logger.ts'
import { openApp } from '../app.ts'
import { rebuildableNames } from '../operations/rebuilds.ts'
import { askControl, type ControlAnswer } from './control-socket.ts'
import { print } from './print.ts'

const USAGE = `waymark rebuild <projection> [flags of start]
Rebuilds a read model, compares it with the live one, swaps it in, and prints what differed as JSON.
Ends with 1 when something differed. Projections:
${rebuildableNames()
  .map((name) => `  ${name}\n`)
  .join('')}`

/** `waymark rebuild`: asks the server that runs on the data folder, or works alone if none runs. */
export const rebuildCommand = async (args: readonly string[]): Promise<number> => {
  const [name, ...flags] = args
  if (name === undefined) throw new ConfigError('name a projection; run waymark rebuild --help')
  if (name === '--help') return print(USAGE)
  const config = readConfig([...flags, '--port', '0'])
  if (isEmbedded(config.logUrl) && !existsSync(config.dataPath))
    throw new ConfigError(`--data ${config.dataPath} does not exist`)
  const answer = (await askControl(config.dataPath, { command: 'rebuild', name })) ?? (await rebuildAlone(config, name))
  if (!answer.ok) throw new ConfigError(answer.error ?? 'the rebuild failed')
  process.stdout.write(`${JSON.stringify(answer.report)}\n`)
  return (answer.report as { differing?: number }).differing ? 1 : 0
}

const rebuildAlone = async (config: ReturnType<typeof readConfig>, name: string): Promise<ControlAnswer> => {
  const app = await openApp(config, createLogger('silent'))
  try {
    return { ok: true, report: await app.control({ command: 'rebuild', name }) }
  } catch (error) {
    return { ok: false, error: (error as Error).message }
  } finally {
    await app.close()
  }
}
