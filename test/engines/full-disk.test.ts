import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'

const HAS_PRLIMIT = spawnSync('prlimit', ['--version']).status === 0
const skip = HAS_PRLIMIT ? false : 'needs prlimit (util-linux) to make writes fail as on a full disk'

/** Runs the child with files of at most so many bytes, lifts the limit after its first line, and answers both lines. */
const runOnFullDisk = async (
  kind: string,
  folder: string,
  bytesMax: number,
): Promise<[first: { [key: string]: unknown }, second: { [key: string]: unknown }]> => {
  const file = new URL('./write-until-full.js', import.meta.url).pathname
  const child = spawn('prlimit', [`--fsize=${bytesMax}:unlimited`, process.execPath, file, kind, folder], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const lines: { [key: string]: unknown }[] = []
  const ended = once(child, 'close')
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(JSON.parse(line) as { [key: string]: unknown })
    if (lines.length > 1) continue
    execFileSync('prlimit', ['--pid', String(child.pid), '--fsize=unlimited:unlimited'])
    child.stdin.end('there is room\n')
  }
  await ended
  return lines as [{ [key: string]: unknown }, { [key: string]: unknown }]
}

test('an event log on a full disk refuses appends, and works again when there is room', {
  skip,
  timeout: 60_000,
}, async (t) => {
  const [full, again] = await runOnFullDisk('log', folderOf(t), 4 * 1024 * 1024)
  const count = full.count as number
  t.ok(count > 20, `${count} events fit`)
  t.match(full, {
    code: 'engine_down',
    head: count - 1,
    waiting: ['rejected', 'rejected', 'rejected'],
    ping: 'engine_down',
    small: 'engine_down',
  })
  t.same(again, { revision: count, read: count + 1, isWhole: true, other: -1 })
})

test('tables on a full disk refuse commits whole, and work again when there is room', {
  skip,
  timeout: 60_000,
}, async (t) => {
  const [full, again] = await runOnFullDisk('tables', folderOf(t), 4 * 1024 * 1024)
  const count = full.count as number
  t.ok(count > 5, `${count} commits fit`)
  t.match(full, { code: 'engine_down', at: count - 1, total: count * 20, ping: 'engine_down', small: 'engine_down' })
  t.same(again, { at: count, total: (count + 1) * 20, small: 'stored' })
})
