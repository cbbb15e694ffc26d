import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { test } from 'tap'
import { parseAllDocuments } from 'yaml'
import { FLAGS, ROLES, variableOf } from '../../src/config-flags.ts'
import { readConfig } from '../../src/config.ts'
import { exampleVariables, roleEnvironments } from '../support/compose-file.ts'
import { kustomization, type Manifest, merged } from '../support/kubernetes.ts'
import { ingressPaths, livePaths } from '../support/role-paths.ts'

const COMPONENT = 'app.kubernetes.io/component'
const all = merged()
const ofKind = (kind: string): Manifest[] => all.filter((one) => one.kind === kind)
const deployments = ofKind('Deployment')
const containerOf = (deployment: Manifest): Manifest => deployment.spec.template.spec.containers[0]

test('each manifest has the members of its kind, and no others', async (t) => {
  const isValid = new Ajv2020({ strictRequired: false }).compile(
    JSON.parse(readFileSync('test/fixtures/kubernetes.schema.json', 'utf8')),
  )
  for (const one of all) {
    isValid(one)
    const ofItsKind = isValid.errors?.filter(({ schemaPath }) => !/\/(apiVersion|kind)\/const$/.test(schemaPath))
    t.equal(
      isValid.errors ?? null,
      null,
      `${one.kind} ${one.metadata.name}: ${JSON.stringify(ofItsKind)?.slice(0, 500)}`,
    )
  }
  const names = all.map((one) => `${one.kind} ${one.metadata.name}`)
  t.equal(new Set(names).size, names.length)
})

test('roles, selectors, probes, ports and variables are those of the service', async (t) => {
  const roles = deployments.flatMap((one) => containerOf(one).env[0].value.split(','))
  t.same(roles.sort(), [...ROLES].sort(), 'each role has a Deployment')
  const literals = (kustomization().configMapGenerator[0].literals as string[]).map((one) => one.split(/=(.*)/s))
  const known = new Set(FLAGS.map(({ name }) => variableOf(name)))
  for (const [name] of literals) t.ok(known.has(name), name)
  for (const deployment of deployments) {
    const { selector, template } = deployment.spec
    const { spec } = template
    const container = containerOf(deployment)
    const name = deployment.metadata.name
    t.same(selector.matchLabels, template.metadata.labels, name)
    const [{ podAffinityTerm }] = spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
    t.same(podAffinityTerm.labelSelector, selector, `${name} is kept apart from its own kind`)
    t.ok(
      ofKind('PodDisruptionBudget').some(
        (one) => one.spec.selector.matchLabels[COMPONENT] === selector.matchLabels[COMPONENT],
      ),
    )
    t.match(
      [container.startupProbe, container.readinessProbe, container.livenessProbe],
      [
        { httpGet: { path: '/readyz', port: 'http' } },
        { httpGet: { path: '/healthz', port: 'http' } },
        { httpGet: { path: '/healthz', port: 'http' } },
      ],
    )
    const [, seconds] = container.lifecycle.preStop.exec.command
    t.ok(spec.terminationGracePeriodSeconds >= Number(seconds) + 30, 'the end has its 25 s')
    const mounted = container.volumeMounts.map(({ name: volume }: Manifest) => volume)
    t.same(
      mounted,
      spec.volumes.map(({ name: volume }: Manifest) => volume),
    )
    const engines = Object.values(roleEnvironments())[0]
    const environment = { ...engines, ...Object.fromEntries(literals), WAYMARK_ROLE: container.env[0].value }
    const config = readConfig([], environment)
    t.equal(config.port, container.ports[0].containerPort, 'the port that the service listens on')
    t.same(config.roles, container.env[0].value.split(','))
    t.ok(container.volumeMounts.some(({ mountPath }: Manifest) => config.keysPath.startsWith(`${mountPath}/`)))
  }
  t.ok(exampleVariables.METRICS_TOKEN)
})

test('requests go to the processes that have their role', async (t) => {
  const components = new Map(ofKind('Service').map((one) => [one.metadata.name, one.spec.selector[COMPONENT]]))
  const [{ http }] = ofKind('Ingress')[0].spec.rules
  const roleOf = (path: string): string => {
    const fits = (http.paths as Manifest[]).filter(({ path: begun, pathType }) =>
      pathType === 'Exact' ? path === begun : path === begun || path.startsWith(begun.replace(/\/?$/, '/')),
    )
    const [longest] = fits.sort((a, b) => b.path.length - a.path.length)
    return components.get(longest.backend.service.name)
  }
  for (const path of ingressPaths()) t.equal(roleOf(path), 'ingress', path)
  for (const path of livePaths()) t.equal(roleOf(path), 'live', path)
  for (const path of [
    '/',
    '/api/v3/trackers',
    '/api/v3/live-positions',
    '/api/v3/ingest-keys',
    '/api/v3/location-histories',
  ])
    t.equal(roleOf(path), 'api', path)
})

const hasKubectl = spawnSync('kubectl', ['kustomize', '--help']).status === 0

test('kustomize makes the same of them', { skip: hasKubectl ? false : 'kubectl is not installed' }, async (t) => {
  const { status, stdout, stderr } = spawnSync('kubectl', ['kustomize', 'deploy/kubernetes'], { encoding: 'utf8' })
  t.equal(status, 0, stderr)
  const made: Manifest[] = parseAllDocuments(stdout).map((document) => document.toJS())
  const [{ newName, newTag }] = kustomization().images
  for (const one of deployments) {
    const found = made.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === one.metadata.name)
    const [container] = found.spec.template.spec.containers
    const { envFrom: _, image, ...rest } = container
    const { envFrom: __, image: ___, ...expected } = containerOf(one)
    t.equal(image, `${newName}:${newTag}`)
    t.same(rest, expected, one.metadata.name)
    t.match(found.spec.template.spec.volumes, one.spec.template.spec.volumes)
  }
  for (const { kind, metadata } of made) t.ok(kind === 'Namespace' || metadata.namespace === 'waymark', metadata.name)
})
