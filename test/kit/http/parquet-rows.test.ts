import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { openChdbHistoryStore } from '../../../src/engines/chdb/chdb-history.ts'
import { type ParquetColumn, ParquetRows, type ParquetValue } from '../../../src/kit/http/parquet-rows.ts'
import { folderOf } from '../../support/folder-of.ts'

const COLUMNS: ParquetColumn[] = [
  { name: 'id', type: 'text' },
  { name: 'at', type: 'time' },
  { name: 'lat', type: 'number' },
  { name: 'speed', type: 'number', isOptional: true },
  { name: 'note', type: 'text', isOptional: true },
  { name: 'never', type: 'number', isOptional: true },
]

const rowOf = (i: number): ParquetValue[] => [
  `row ${i} ${'é😀'.repeat(i % 3)}`,
  i % 2 === 0 ? 1_700_000_000_123 + i : -i,
  i / 7 - 90,
  i % 5 === 0 ? undefined : -i / 3,
  i % 11 === 0 ? `"${i}"\n` : i % 13 === 0 ? '' : undefined,
  undefined,
]

test('a Parquet file says what was added, whatever the number of its rows', async (t) => {
  const folder = folderOf(t)
  const store = await openChdbHistoryStore({ path: join(folder, 'data'), scratchPath: join(folder, 'scratch') })
  t.teardown(() => store.close())
  for (const count of [0, 1, 7, 8, 9, 16_383, 16_384, 16_385, 300_000]) {
    const writer = new ParquetRows(COLUMNS, 16_384)
    const parts: Uint8Array[] = []
    for (let i = 0; i < count; i++) {
      writer.add(rowOf(i))
      if (i % 1_000 === 0) parts.push(writer.take())
    }
    parts.push(writer.end())
    const file = join(folder, `${count}.parquet`)
    writeFileSync(file, Buffer.concat(parts))
    const types = await store.rows<object>(
      `SELECT ${COLUMNS.map(({ name }) => `toTypeName(${name}) AS ${name}`).join(', ')} FROM file({file:String}, 'Parquet') LIMIT 1`,
      { file },
    )
    const expected = {
      id: 'String',
      at: "DateTime64(3, 'UTC')",
      lat: 'Float64',
      speed: 'Nullable(Float64)',
      note: 'Nullable(String)',
      never: 'Nullable(Float64)',
    }
    t.same(types, count === 0 ? [] : [expected])
    let met = 0
    let rest = ''
    let wrong: unknown
    const sql = `SELECT id, toUnixTimestamp64Milli(at) AS at, lat, speed, note, never FROM file({file:String}, 'Parquet') SETTINGS input_format_parquet_preserve_order = 1`
    for await (const chunk of store.query(sql, { file }, 'JSONCompactEachRow')) {
      const lines = (rest + Buffer.from(chunk).toString()).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) {
        const expected = rowOf(met++).map((value) => value ?? null)
        if (JSON.stringify(JSON.parse(line)) !== JSON.stringify(expected)) wrong ??= [line, expected]
      }
    }
    t.same([met, wrong], [count, undefined], `${count} rows`)
  }
})
