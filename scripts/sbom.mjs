// Prints the software bill of materials of a production install (CycloneDX 1.5), from package-lock.json.
// `npm sbom --omit dev` leaves out what both a dependency and a tool of development need: so npm lists all, and what it marks
// as being for development alone goes.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'

const text = execFileSync('npm', ['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only'], {
  encoding: 'utf8',
  maxBuffer: 64 * 1024 ** 2,
  stdio: ['ignore', 'pipe', 'inherit'],
})
const bom = JSON.parse(text)
const isDevelopment = ({ properties = [] }) =>
  properties.some(({ name, value }) => name === 'cdx:npm:package:development' && value === 'true')
const left = new Set(bom.components.filter(isDevelopment).map((component) => component['bom-ref']))

bom.metadata.component.name = JSON.parse(readFileSync('package.json', 'utf8')).name // npm writes the name of the folder
bom.components = bom.components.filter((component) => !left.has(component['bom-ref']))
bom.dependencies = bom.dependencies
  .filter(({ ref }) => !left.has(ref))
  .map((one) => ({ ...one, dependsOn: (one.dependsOn ?? []).filter((ref) => !left.has(ref)) }))
console.log(JSON.stringify(bom, null, 2))
