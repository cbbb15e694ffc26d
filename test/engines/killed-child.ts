import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

/** Runs a compiled file beside this one, kills it with SIGKILL after so many lines and so many ms, and answers its whole lines. */
export const runUntilKilled = async (
  file: string,
  folder: string,
  linesMin: number,
  moreMs: number,
): Promise<string[]> => {
  const child = spawn(process.execPath, [new URL(`./${file}.js`, import.meta.url).pathname, folder], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const lines: string[] = []
  const ended = once(child, 'close')
  // readline answers a last line without its end too: the id at its end tells whether it is whole.
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line)
    if (lines.length === linesMin) setTimeout(() => child.kill('SIGKILL'), moreMs)
  }
  await ended
  return lines
}
