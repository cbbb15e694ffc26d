import { spawn, spawnSync } from 'node:child_process'
import { cpSync, mkdirSync, readFileSync, symlinkSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { createInterface } from 'node:readline'
import { test } from 'tap'
import { folderOf } from '../support/folder-of.ts'
import { until } from '../support/service.ts'

/** Lines of the last stage of the Dockerfile, continued ones joined. */
const lastStage = (): string[] => {
  const lines = readFileSync('Dockerfile', 'utf8').replaceAll('\\\n', ' ').split('\n')
  return lines.slice(lines.findLastIndex((line) => line.startsWith('FROM ')))
}

/** Puts what the image copies into a folder. Packages are linked: which of them are pruned is for the import rules. */
const buildImage = (folder: string): void => {
  for (const line of lastStage()) {
    const words = /^COPY --from=build (.+)$/.exec(line)?.[1].split(' ')
    if (words === undefined) continue
    const to = join(folder, words.at(-1) as string)
    for (const from of words.slice(0, -1)) {
      const path = from.replace(/^\/app\//, '')
      const target = words.at(-1)?.endsWith('/') ? join(to, basename(path)) : to
      mkdirSync(dirname(target), { recursive: true })
      if (path === 'node_modules') symlinkSync(resolve(path), target)
      else cpSync(path, target, { recursive: true })
    }
  }
}

const environment = (folder: string): { [variable: string]: string } => {
  const ofImage = lastStage()
    .filter((line) => line.startsWith('ENV '))
    .flatMap((line) =>
      line
        .slice(4)
        .split(' ')
        .map((pair) => pair.split('=') as [string, string]),
    )
  // What a container has of its own: its address, its port and the mount of its volume.
  const own = { WAYMARK_HOST: '127.0.0.1', WAYMARK_PORT: '0', WAYMARK_DATA: `${folder}-data` }
  return { PATH: process.env.PATH as string, ...Object.fromEntries(ofImage), ...own }
}

test('the image has all that the service needs, and starts on the embedded engines', {
  timeout: 900_000,
}, async (t) => {
  // The image holds no compiled modules that an old bundle could be compared with.
  t.equal(spawnSync(process.execPath, ['scripts/build-bundle.mjs'], { stdio: 'inherit' }).status, 0)
  const folder = `${folderOf(t)}/app`
  buildImage(folder)
  const stage = lastStage()
  t.equal(
    stage.findLast((line) => line.startsWith('USER ')),
    'USER node',
    'it does not run as root',
  )
  const [command, ...args] = ['ENTRYPOINT', 'CMD'].flatMap((name) =>
    JSON.parse(stage.find((line) => line.startsWith(`${name} `))?.slice(name.length) ?? '[]'),
  )
  t.equal(command, 'node')
  const child = spawn(process.execPath, [...args, '--demo'], {
    cwd: folder,
    env: environment(folder),
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.teardown(() => void child.kill('SIGKILL'))
  const exited = new Promise((done) => child.once('exit', done))
  const lines: string[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line))
  const said = (msg: string) => lines.map((line) => JSON.parse(line)).find((line) => line.msg === msg)
  await until(
    'the demo',
    () => said('demo') !== undefined || said('the demo cannot run') !== undefined || child.exitCode !== null,
  )
  t.equal(said('the demo cannot run'), undefined)
  const { url } = said('listening')
  for (const path of ['/', '/web/account.js', '/healthz', '/readyz'])
    t.equal((await fetch(url + path)).status, 200, path)
  const health = /"(fetch.*)"\]/.exec(stage.find((line) => line.startsWith('HEALTHCHECK ')) ?? '')?.[1] ?? ''
  const check = spawn(process.execPath, ['-e', health], { env: { WAYMARK_PORT: new URL(url).port } })
  t.equal(await new Promise((done) => check.once('exit', done)), 0, 'its health check succeeds')
  child.kill('SIGTERM')
  t.equal(await exited, 0)
})
