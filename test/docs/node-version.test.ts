import { spawnSync } from 'node:child_process'
import { test } from 'tap'

const PRETEND =
  "data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'24.1.0'}})"

test('a Node that the binaries do not cover ends with 2 and the one command that mends it', async (t) => {
  const { status, stderr } = spawnSync(process.execPath, ['--import', PRETEND, 'dist/src/main.js', 'start'], {
    encoding: 'utf8',
  })
  t.equal(status, 2)
  t.match(stderr, /^Waymark runs on Node 20 or 22, .*run: nvm install 22\n$/)
})

test('help needs no covered Node and names every command', async (t) => {
  const { status, stdout } = spawnSync(process.execPath, ['--import', PRETEND, 'dist/src/main.js', 'help'], {
    encoding: 'utf8',
  })
  t.equal(status, 0)
  for (const command of ['start', 'demo', 'replay', 'watch', 'rebuild', 'doctor'])
    t.match(stdout, new RegExp(`waymark ${command}`))
})
