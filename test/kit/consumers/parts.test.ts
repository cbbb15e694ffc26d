import { randomUUID } from 'node:crypto'
import { test, type Test } from 'tap'
import { directory } from '../../../projections/directory.ts'
import type { Checkpoint } from '../../../src/engines/table-store.ts'
import { decodeJson, encodeJson } from '../../../src/kernel/event.ts'
import type { Row } from '../../../src/kernel/table.ts'
import { WORDS_VERSION } from '../../../src/kernel/words.ts'
import { versionsOf } from '../../../src/kit/consumers/projection.ts'
import { settling } from '../../../src/kit/consumers/settle.ts'
import { folderOf } from '../../support/folder-of.ts'
import { openServices, runProjections, type TestServices } from '../../support/open-services.ts'

/** Keeps how often each stream of a category was written, as this version of it says it. */
const part = (noun: string, version = 1) => ({
  tables: [{ name: `${noun}s`, version, range: ['at'] }],
  prefixes: [`${noun}-`],
  inputs: [`${noun}Written`],
  apply: (event: { stream: string; revision: number; data: Uint8Array }, rows: { put: Put }) =>
    rows.put(`${noun}s`, 'all', event.stream, {
      times: event.revision + 1,
      at: decodeJson<number>(event.data),
      version,
    }),
})
type Settled = (wrote: ReturnType<typeof write>) => Promise<unknown>
type Put = (table: string, scope: string, id: string, row: Row) => void

const write = async ({ log }: TestServices, noun: string, at: number) => {
  const event = { id: randomUUID(), type: `${noun}Written`, data: encodeJson(at), isJson: true, metadata: {} }
  return { position: (await log.append(`${noun}-1`, [event], 'any')).position, types: [event.type] }
}

const rowsOf = async ({ tables }: TestServices, table: string) => {
  const rows: Row[] = []
  for await (const { row } of tables.scanAll(table)) rows.push(row)
  return rows
}

/** Runs the parts over the folder until everything is applied, then does something, and ends. */
const life = async (
  t: Test,
  folder: string,
  parts: ReturnType<typeof part>[],
  run: (services: TestServices, settled: Settled) => Promise<unknown>,
) => {
  const services = await openServices(folder)
  const projection = directory(parts)
  const runner = await runProjections(services, [projection])
  await runner.ready()
  const settle = settling(services, [projection])
  await run(services, async (wrote) => t.ok(await settle(await wrote, 60_000)))
  await runner.close()
  await services.close()
}

test('a part that changes, and one that is new, is built anew by itself', async (t) => {
  const folder = folderOf(t)
  await life(t, folder, [part('cup'), part('jug')], async (services, settled) => {
    await write(services, 'pot', 1)
    for (let i = 0; i < 700; i++) void write(services, 'cup', i)
    await settled(write(services, 'jug', 5))
    // Nothing says this again: whoever builds the table anew loses it.
    const row = { times: 0, at: 0, version: 0 }
    for (const table of ['cups', 'jugs']) await services.tables.commit([{ table, scope: 'all', id: 'mark', row }])
  })
  await life(t, folder, [part('cup', 2), part('jug'), part('pot')], async (services, settled) => {
    t.same(
      await rowsOf(services, 'cups'),
      [{ times: 700, at: 699, version: 2 }],
      'the changed one is as its version says',
    )
    t.same(
      await rowsOf(services, 'pots'),
      [{ times: 1, at: 1, version: 1 }],
      'the new one has what was there before it',
    )
    t.equal((await rowsOf(services, 'jugs')).length, 2, 'the other one was not touched')
    for (const noun of ['cup', 'jug', 'pot']) await settled(write(services, noun, 9))
    t.match(await rowsOf(services, 'cups'), [{ times: 701, at: 9 }])
    t.match(
      (await rowsOf(services, 'jugs')).find(({ times }) => times !== 0),
      { times: 2, at: 9 },
    )
    t.match(await rowsOf(services, 'pots'), [{ times: 2, at: 9 }], 'and all go on together')
  })
  await life(t, folder, [part('jug'), part('pot')], async (services) => {
    t.equal((await rowsOf(services, 'jugs')).length, 2, 'one that is gone touches no other')
  })
})

test('a part whose words were made otherwise is built anew by itself', async (t) => {
  const folder = folderOf(t)
  const searched = (noun: string) => {
    const plain = part(noun)
    return { ...plain, tables: plain.tables.map((table) => ({ ...table, text: ['name'] })) }
  }
  const parts = [searched('cup'), part('jug')]
  const versions = ({ all: _all, ...others }: Checkpoint = {}) => others
  await life(t, folder, parts, async (services, settled) => {
    await write(services, 'cup', 1)
    await settled(write(services, 'jug', 1))
    const { at, fence } = await services.tables.take('directory')
    const before = { ...at, 'version:cups': (at?.['version:cups'] ?? 0) - WORDS_VERSION }
    const row = { times: 0, at: 0, version: 0 }
    const marks = ['cups', 'jugs'].map((table) => ({ table, scope: 'all', id: 'mark', row }))
    await services.tables.commit(marks, { consumer: 'directory', from: at, at: before, fence })
  })
  await life(t, folder, parts, async (services) => {
    t.equal((await rowsOf(services, 'cups')).length, 1)
    t.equal((await rowsOf(services, 'jugs')).length, 2)
    const { at } = await services.tables.take('directory')
    t.same(versions(at), versionsOf(directory(parts)), 'and its version is told')
    const [cups, jugs] = directory(parts).parts ?? []
    t.same(versions(at), { 'version:cups': cups.version + WORDS_VERSION, 'version:jugs': jugs.version })
  })
})

test('what was stored before parts had versions is built anew once', async (t) => {
  const folder = folderOf(t)
  await life(t, folder, [part('cup')], async (services, settled) => {
    await settled(write(services, 'cup', 1))
    const { at, fence } = await services.tables.take('directory')
    const before = { all: at?.all ?? -1, version: 123 }
    const row = { times: 0, at: 0, version: 0 }
    await services.tables.commit([{ table: 'cups', scope: 'all', id: 'mark', row }], {
      consumer: 'directory',
      from: at,
      at: before,
      fence,
    })
  })
  for (const rows of [1, 2])
    await life(t, folder, [part('cup')], async (services) => {
      t.equal((await rowsOf(services, 'cups')).length, rows)
      const row = { times: 0, at: 0, version: 0 }
      await services.tables.commit([{ table: 'cups', scope: 'all', id: 'mark', row }])
    })
})

test('a table belongs to one part', (t) => {
  t.throws(() => directory([part('cup'), { ...part('jug'), tables: part('cup').tables }]), /cups belongs to two parts/)
  t.end()
})
