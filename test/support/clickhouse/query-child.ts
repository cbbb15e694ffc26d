import { Session } from 'chdb'

// node dist/test/support/clickhouse/query-child.js <folder> <statement>…: runs each statement in one session of the engine
// and prints one line of JSON for it, `{ "rows": […] }` or `{ "error": "…" }`. A `config.xml` in the current folder counts.
const [path, ...statements] = process.argv.slice(2)
const session = new Session(path)
for (const sql of statements) {
  let answer: object
  try {
    const text = (await session.queryAsync(sql, { format: 'JSONEachRow' })).text()
    const lines = text.split('\n').filter((line) => line !== '')
    answer = { rows: lines.map((line) => JSON.parse(line)) }
  } catch (error) {
    answer = { error: (error as Error).message }
  }
  process.stdout.write(`${JSON.stringify(answer)}\n`)
}
session.close()
