// Holds docker-compose.yml to what it refers to: services, images, volumes, and the variables that the service reads.
import { existsSync, readFileSync } from 'node:fs'
import { parse } from 'yaml'
import { FLAGS, ROLES, variableOf } from '../dist/src/config-flags.js'
import { readConfig } from '../dist/src/config.js'

const file = process.argv[2] ?? 'docker-compose.yml'
const TOP_LEVEL = new Set(['name', 'services', 'volumes', 'networks', 'secrets', 'configs'])
const SERVICE_KEYS = new Set([
  'build',
  'image',
  'command',
  'entrypoint',
  'environment',
  'volumes',
  'ports',
  'depends_on',
  'healthcheck',
  'restart',
  'profiles',
  'ulimits',
  'secrets',
  'networks',
  'user',
  'read_only',
  'tmpfs',
  'cap_drop',
  'security_opt',
  'mem_limit',
  'pids_limit',
  'logging',
  'stop_grace_period',
  'stop_signal',
])
const CONDITIONS = new Set(['service_started', 'service_healthy', 'service_completed_successfully'])
const VARIABLES = new Set(FLAGS.flatMap(({ name }) => [variableOf(name), `${variableOf(name)}_FILE`]))

const faults = []
const fault = (where, what) => faults.push(`${file}: ${where}: ${what}`)

const checkService = (name, service, { services, volumes, networks }) => {
  for (const key of Object.keys(service)) if (!SERVICE_KEYS.has(key)) fault(name, `"${key}" is not known`)
  if (service.image === undefined && service.build === undefined) fault(name, 'has neither image nor build')
  if (service.build === undefined && !isPinned(service.image)) fault(name, `image ${service.image} names no version`)
  if (service.build !== undefined && !existsSync(`${service.build.context ?? service.build}/Dockerfile`))
    fault(name, 'builds from a folder without Dockerfile')
  for (const volume of service.volumes ?? []) checkVolume(name, volume, volumes)
  if (service.mem_limit === undefined) fault(name, 'has no mem_limit')
  for (const network of service.networks ?? [])
    if (network !== 'default' && !(network in networks)) fault(name, `network ${network} is not declared`)
  for (const port of service.ports ?? [])
    if (!/^(\d+\.\d+\.\d+\.\d+:)?\d+:\d+(\/(tcp|udp))?$/.test(port))
      fault(name, `port "${port}" is no "host:container"`)
  checkDependencies(name, service.depends_on ?? {}, services)
  checkEnvironment(name, service.environment ?? {})
}

const isPinned = (image) => /:[^:/]*\d/.test(image ?? '') || /@sha256:[0-9a-f]{64}$/.test(image ?? '')

const checkVolume = (name, volume, declared) => {
  const [source, target] = typeof volume === 'string' ? volume.split(':') : [volume.source, volume.target]
  if (!target?.startsWith('/')) fault(name, `volume ${JSON.stringify(volume)} has no absolute path in the container`)
  if (!/^[./~]/.test(source) && !(source in declared)) fault(name, `volume ${source} is not declared`)
  if (/^\./.test(source) && !existsSync(source)) fault(name, `${source} is not there`)
}

const checkDependencies = (name, dependencies, services) => {
  const wanted = Array.isArray(dependencies) ? dependencies.map((other) => [other, {}]) : Object.entries(dependencies)
  for (const [other, { condition = 'service_started' }] of wanted) {
    if (services[other] === undefined) fault(name, `depends on ${other}, which is no service`)
    else if (!CONDITIONS.has(condition)) fault(name, `depends_on knows no condition ${condition}`)
    else if (condition === 'service_healthy' && services[other].healthcheck?.test === undefined)
      fault(name, `waits for the health of ${other}, which has no healthcheck`)
  }
}

/** The service must be able to read what it is given. */
const checkEnvironment = (name, environment) => {
  const given = Object.entries(environment).filter(([variable]) => variable.startsWith('WAYMARK_'))
  for (const [variable] of given) if (!VARIABLES.has(variable)) fault(name, `${variable} is no variable of the service`)
  if (given.length === 0) return
  try {
    readConfig([], Object.fromEntries(given.map(([variable, value]) => [variable, String(value)])))
  } catch (error) {
    fault(name, error.message)
  }
}

/** Where the work is split, nobody's may be missing. */
const checkRoles = (services) => {
  const split = Object.values(services).filter(({ profiles }) => profiles?.includes('roles'))
  const covered = new Set(split.flatMap(({ environment }) => String(environment?.WAYMARK_ROLE ?? ROLES).split(',')))
  for (const role of ROLES) if (split.length > 0 && !covered.has(role)) fault('profile roles', `nobody is ${role}`)
}

const compose = parse(readFileSync(file, 'utf8'), { merge: true })
const { services = {}, volumes = {}, networks = {} } = compose
for (const key of Object.keys(compose))
  if (!TOP_LEVEL.has(key) && !key.startsWith('x-')) fault('top level', `"${key}" is not known`)
if (Object.keys(services).length === 0) fault('services', 'there are none')
for (const [name, service] of Object.entries(services)) checkService(name, service, { services, volumes, networks })
for (const volume of Object.keys(volumes)) {
  const isUsed = Object.values(services).some((service) =>
    service.volumes?.some((one) => String(one.source ?? one).split(':')[0] === volume),
  )
  if (!isUsed) fault('volumes', `${volume} is declared and used by nobody`)
}
checkRoles(services)
process.stdout.write(
  faults.length === 0 ? `${Object.keys(services).length} services, no fault\n` : `${faults.join('\n')}\n`,
)
process.exitCode = faults.length === 0 ? 0 : 1
