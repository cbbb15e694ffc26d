// Compares the packages of the server library with scripts/server-library.json: the integrity in package-lock.json, and every
// binary that is installed. `--official <clone>` compares the binaries with the releases of their author; `--write` makes the
// list anew, after somebody has looked at a new version. Ends with 1 when something differs.
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

const LIST = new URL('server-library.json', import.meta.url)
const list = JSON.parse(readFileSync(LIST, 'utf8'))
const official = process.argv[process.argv.indexOf('--official') + 1]
const faults = []
/** The trees of a large repository are some megabytes. */
const TEXT = { encoding: 'utf8', maxBuffer: 64 * 1024 * 1024 }

const binariesOf = (folder) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.node'))

const hash = (algorithm, ...parts) => parts.reduce((sum, part) => sum.update(part), createHash(algorithm)).digest('hex')

/** `gitBlob` is what git calls the same bytes: a clone without files is enough to compare with. */
const entryOf = (folder, path) => {
  const bytes = readFileSync(join(folder, path))
  return { sha256: hash('sha256', bytes), gitBlob: hash('sha1', `blob ${bytes.length}\0`, bytes) }
}

const checkInstalled = ({ folder, binaries }) => {
  // A production image keeps only the binaries of its system.
  for (const path of existsSync(folder) ? binariesOf(folder) : []) {
    const known = binaries[path]
    if (known === undefined) faults.push(`${join(folder, path)} is not in the list`)
    else if (known.sha256 !== entryOf(folder, path).sha256) faults.push(`${join(folder, path)} is not as in the list`)
  }
}

const checkLock = ({ folder, version, integrity }) => {
  const locked = JSON.parse(readFileSync('package-lock.json', 'utf8')).packages[folder]
  if (locked?.version !== version || locked.integrity !== integrity)
    faults.push(
      `package-lock.json has ${locked?.version} ${locked?.integrity} for ${folder}, the list ${version} ${integrity}`,
    )
}

const checkOfficial = (clone, { officialTag, binaries }) => {
  const { status, stdout } = spawnSync('git', ['-C', clone, 'ls-tree', '-r', officialTag], TEXT)
  if (status !== 0) return faults.push(`${officialTag} is not in ${clone}`)
  const blobs = new Map(
    stdout
      .trim()
      .split('\n')
      .map((line) => [basename(line.split('\t')[1]), line.split(/\s/)[2]]),
  )
  for (const [path, { gitBlob, officialName = basename(path) }] of Object.entries(binaries)) {
    const theirs = blobs.get(officialName)
    if (theirs === gitBlob) console.log(`same      ${officialName}`)
    else faults.push(`${officialName} is ${theirs === undefined ? 'not in' : 'another one than in'} ${officialTag}`)
  }
}

for (const one of list) {
  if (process.argv.includes('--write') && existsSync(one.folder))
    one.binaries = Object.fromEntries(
      binariesOf(one.folder)
        .sort()
        .map((path) => [path, { ...one.binaries[path], ...entryOf(one.folder, path) }]),
    )
  checkLock(one)
  checkInstalled(one)
  if (process.argv.includes('--official')) checkOfficial(official, one)
}
if (process.argv.includes('--write')) writeFileSync(LIST, `${JSON.stringify(list, null, 2)}\n`)
for (const fault of faults) console.error(fault)
console.log(`${faults.length} differences`)
process.exitCode = faults.length === 0 ? 0 : 1
