import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type Test, test } from 'tap'

const SMALL = 'size=8m'

/** Why no small disk can be had here, or false. Mounts it. */
const noSmallDisk = (folder: string): string | false => {
  if (process.getuid?.() !== 0) return 'needs root to mount a small disk'
  return spawnSync('mount', ['-t', 'tmpfs', '-o', SMALL, 'tmpfs', folder]).status === 0
    ? false
    : 'cannot mount a small disk here'
}

/** Runs the child on a small disk, enlarges it after its first line, and answers both lines; undefined where there is none. */
const runOnFullDisk = async (
  t: Test,
  kind: string,
): Promise<[first: { [key: string]: unknown }, second: { [key: string]: unknown }] | undefined> => {
  const folder = mkdtempSync(join(tmpdir(), 'waymark-small-disk-'))
  t.teardown(() => rmdirSync(folder))
  const reason = noSmallDisk(folder)
  if (reason !== false) return void t.skip(reason, async () => undefined)
  t.teardown(() => execFileSync('umount', ['-l', folder]))
  const file = new URL('./write-until-full.js', import.meta.url).pathname
  const child = spawn(process.execPath, [file, kind, `${folder}/data`], { stdio: ['pipe', 'pipe', 'ignore'] })
  const lines: { [key: string]: unknown }[] = []
  const ended = once(child, 'close')
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(JSON.parse(line) as { [key: string]: unknown })
    if (lines.length > 1) continue
    execFileSync('mount', ['-o', 'remount,size=64m', folder])
    child.stdin.end('there is room\n')
  }
  await ended
  return lines as [{ [key: string]: unknown }, { [key: string]: unknown }]
}

test('an event log on a full disk refuses appends, and works again when there is room', {
  timeout: 900_000,
}, async (t) => {
  const lines = await runOnFullDisk(t, 'log')
  if (lines === undefined) return
  const [full, again] = lines
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
  timeout: 900_000,
}, async (t) => {
  const lines = await runOnFullDisk(t, 'tables')
  if (lines === undefined) return
  const [full, again] = lines
  const count = full.count as number
  t.ok(count > 5, `${count} commits fit`)
  t.match(full, { code: 'engine_down', at: count - 1, total: count * 20, ping: 'engine_down', small: 'engine_down' })
  t.same(again, { at: count, total: (count + 1) * 20, small: 'stored' })
})
