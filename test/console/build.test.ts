import { execFileSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { test } from 'tap'

const ASSETS = 'dist/console/assets'
const FIRST_VIEW_BYTES_MAX = 500_000

test('the first view of the map is at most 500 KB, compressed', async (t) => {
  const files = JSON.parse(readFileSync('dist/console/first-view.json', 'utf8')) as string[]
  t.ok(files.some((name) => name.startsWith('map-view-')) && files.some((name) => name.startsWith('map-worker-')))
  const bytes = files.reduce((sum, name) => sum + statSync(`${ASSETS}/${name}.gz`).size, 0)
  t.ok(bytes > 100_000 && bytes <= FIRST_VIEW_BYTES_MAX, `${bytes} bytes`)
})

test('the console is built once, and has nothing inline', async (t) => {
  const said = execFileSync(process.execPath, ['scripts/build-console.mjs'], { encoding: 'utf8' })
  t.equal(said, '', 'unchanged inputs are not built again')
  const html = readFileSync('dist/console/index.html', 'utf8')
  t.notMatch(html, /<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/)
  t.notMatch(html, /%main/)
  const names = readdirSync(ASSETS)
  for (const name of names.filter((name) => /\.(js|css)$/.test(name)))
    t.ok(names.includes(`${name}.br`) && names.includes(`${name}.gz`), name)
})
