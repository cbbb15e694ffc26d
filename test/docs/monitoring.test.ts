import { spawnSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { parse } from 'yaml'
import { composeOf } from '../support/compose-file.ts'
import { folderOf } from '../support/folder-of.ts'
import { HAPROXY_FILE, withoutHaproxy } from '../support/haproxy.ts'
import { ingressPaths, livePaths } from '../support/role-paths.ts'
import { call, startService, until } from '../support/service.ts'

const ALERTS = 'deploy/prometheus/alerts.yml'
const CONFIG = 'deploy/prometheus/prometheus.yml'

interface Rule {
  alert: string
  expr: string
  labels: { severity: string }
  annotations: { summary: string; runbook: string }
}

const rules: Rule[] = parse(readFileSync(ALERTS, 'utf8')).groups.flatMap(
  ({ rules: ofGroup }: { rules: Rule[] }) => ofGroup,
)
const dashboard = JSON.parse(readFileSync('deploy/grafana/dashboards/waymark.json', 'utf8'))
const panels = dashboard.panels as {
  id: number
  title: string
  targets?: { expr: string }[]
  datasource?: { uid: string }
}[]
const queries = [
  ...rules.map(({ expr }) => expr),
  ...panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
]

const promtool = spawnSync('promtool', ['--version']).status === 0
const withoutPromtool = promtool ? false : 'promtool is not installed (apt-get install prometheus)'

/** Of Prometheus itself, and what it puts on every series. */
const OF_PROMETHEUS = new Set(['up'])
const LABELS_OF_PROMETHEUS = new Set(['job', 'instance', 'le'])

test('every metric that rules and dashboard name is shown by a service that runs, with these labels', async (t) => {
  const service = await startService(join(folderOf(t), 'data'))
  t.teardown(() => service.kill())
  let text = ''
  // Until something was appended and the engines were asked, their series are not there.
  await until('series', async () => {
    text = (await call(service, 'GET', '//metrics')).text
    return text.includes('waymark_engine_up{') && text.includes('waymark_consumer_lag_seconds{')
  })
  let count = 0
  for (const query of queries)
    for (const [, name, labels = ''] of query.matchAll(
      /\b((?:waymark|process|nodejs|up)[a-z_]*)(?![a-z_(])(?:\{([^}]*)\})?/g,
    )) {
      if (OF_PROMETHEUS.has(name)) continue
      count++
      const metric = name.replace(/_(bucket|sum|count)$/, '')
      t.match(text, new RegExp(`^# TYPE ${metric} `, 'm'), `${name} in ${query}`)
      const series = text.split('\n').filter((line) => line.startsWith(`${name}{`))
      for (const [, label, value] of labels.matchAll(/(\w+)="([^"]*)"/g)) {
        if (LABELS_OF_PROMETHEUS.has(label)) continue
        if (series.length === 0) t.comment(`nothing of ${name} happened yet`)
        else
          t.ok(
            series.some((line) => line.includes(`${label}="${value}"`)),
            `${name} has ${label}="${value}"`,
          )
      }
    }
  t.ok(count > 30, `${count} uses`)
})

test('each alert has its row and its section in the runbooks', async (t) => {
  const page = readFileSync('docs/runbooks.md', 'utf8')
  const anchors = new Set(
    [...page.matchAll(/^## (.+)$/gm)].map(([, heading]) =>
      heading
        .toLowerCase()
        .replace(/[^a-z0-9 -]/g, '')
        .replaceAll(' ', '-'),
    ),
  )
  const rows = [...page.matchAll(/^\| `(Waymark\w+)` \| .* \| \[[^\]]+\]\(#([a-z0-9-]+)\) \|$/gm)]
  t.same(
    rows.map(([, alert]) => alert),
    rules.map(({ alert }) => alert),
    'the table has them in this order',
  )
  for (const [i, { alert, annotations, labels }] of rules.entries()) {
    const [path, anchor] = annotations.runbook.split('#')
    t.equal(path, 'docs/runbooks.md', alert)
    t.ok(anchors.has(anchor), `${alert} leads to #${anchor}`)
    t.equal(rows[i]?.[2], anchor, `${alert}: rule and table lead to the same section`)
    t.ok(['critical', 'warning'].includes(labels.severity), alert)
    t.ok(annotations.summary.length > 10, alert)
  }
})

test('Prometheus scrapes every process, and Grafana finds Prometheus', async (t) => {
  const { services } = composeOf({})
  const { scrape_configs: jobs, rule_files } = parse(readFileSync(CONFIG, 'utf8'))
  const [waymark, haproxy] = jobs
  const processes = Object.entries<{ image: string }>(services).filter(([, { image }]) => image === 'waymark:local')
  t.same(waymark.dns_sd_configs[0].names.sort(), processes.map(([name]) => name).sort())
  t.equal(
    haproxy.dns_sd_configs[0].port,
    Number(/^frontend metrics\n {2}bind :(\d+)/m.exec(readFileSync(HAPROXY_FILE, 'utf8'))?.[1]),
  )
  t.same(rule_files, ['alerts.yml'])
  const { datasources } = parse(readFileSync('deploy/grafana/provisioning/datasources/prometheus.yml', 'utf8'))
  t.equal(datasources[0].url, 'http://prometheus:9090')
  for (const { title, targets, datasource } of panels) if (targets) t.equal(datasource?.uid, datasources[0].uid, title)
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length)
  const { providers } = parse(readFileSync('deploy/grafana/provisioning/dashboards/waymark.yml', 'utf8'))
  t.ok(services.grafana.volumes.includes(`./deploy/grafana/dashboards:${providers[0].options.path}:ro`))
})

/** A day of one counter or gauge, and which alerts fire then. */
const FIRING: { series: string; values: string; at: string; alert: string }[] = [
  { series: 'waymark_engine_up{engine="log"}', values: '1x5 0x10', at: '10m', alert: 'WaymarkLogDown' },
  {
    series: 'waymark_consumer_lag_seconds{consumer="matcher"}',
    values: '90x20',
    at: '10m',
    alert: 'WaymarkConsumerBehind',
  },
  {
    series: 'waymark_deliveries_total{outcome="dead"}',
    values: '0x5 1x20',
    at: '10m',
    alert: 'WaymarkDeliveriesGivenUp',
  },
  { series: 'waymark_scavenges_failed', values: '0x5 1x200', at: '3h', alert: 'WaymarkScavengesFail' },
  { series: 'waymark_processes_stuck', values: '0x5 2x10', at: '8m', alert: 'WaymarkProcessStuck' },
  {
    series: 'waymark_points_total{result="accepted"}',
    values: '0+600x1400 840000x60',
    at: '1460m',
    alert: 'WaymarkNoPoints',
  },
  { series: 'up{job="waymark",instance="live-1"}', values: '1x20 0x20', at: '25m', alert: 'WaymarkProcessMissing' },
]

test('promtool takes the rules, and they fire when they should', { skip: withoutPromtool }, async (t) => {
  const folder = folderOf(t)
  const run = (...args: string[]) => spawnSync('promtool', args, { encoding: 'utf8' })
  t.equal(run('check', 'rules', ALERTS).status, 0)
  const token = join(folder, 'token')
  writeFileSync(token, 'secret')
  writeFileSync(join(folder, 'alerts.yml'), readFileSync(ALERTS))
  writeFileSync(join(folder, 'prometheus.yml'), readFileSync(CONFIG, 'utf8').replace('/tmp/metrics-token', token))
  const checked = run('check', 'config', join(folder, 'prometheus.yml'))
  t.equal(checked.status, 0, checked.stderr)
  for (const { series, values, at, alert } of FIRING) {
    const quiet = values.replace(/ .*$/, '')
    const tests = [{ interval: '1m', input_series: [{ series, values }], promql_expr_test: [firing(alert, at, true)] }]
    if (quiet !== values)
      tests.push({ interval: '1m', input_series: [{ series, values }], promql_expr_test: [firing(alert, '4m', false)] })
    const file = join(folder, `${alert}.yml`)
    writeFileSync(file, JSON.stringify({ rule_files: ['alerts.yml'], tests }))
    const { status, stdout, stderr } = run('test', 'rules', file)
    t.equal(status, 0, `${alert}: ${stdout}${stderr}`)
  }
})

const firing = (alert: string, at: string, isFiring: boolean) => ({
  expr: `count(ALERTS{alertname="${alert}",alertstate="firing"}) or vector(0)`,
  eval_time: at,
  exp_samples: [{ labels: '{}', value: isFiring ? 1 : 0 }],
})

test('HAProxy sends requests to the processes that have their role', async (t) => {
  const text = readFileSync(HAPROXY_FILE, 'utf8')
  const backendOf = (path: string): string => {
    for (const [, backend, conditions] of text.matchAll(/^ +use_backend (\S+) if (.+)$/gm))
      for (const [, test, values] of conditions.matchAll(/\{ (path|path_beg) ([^}]+) \}/g))
        if (values.split(' ').some((value) => (test === 'path' ? path === value : path.startsWith(value))))
          return backend
    return /^ +default_backend (\S+)$/m.exec(text)?.[1] ?? ''
  }
  for (const path of ingressPaths()) t.equal(backendOf(path), 'ingress', path)
  for (const path of livePaths()) t.equal(backendOf(path), 'live', path)
  for (const path of ['/', '/api/v3/live-positions', '/api/v3/ingest-keys']) t.equal(backendOf(path), 'api', path)
  const { services } = composeOf({})
  for (const [, name, address] of text.matchAll(/^ +server (\S+) (\S+)$/gm)) {
    t.equal(address, `${name}:8080`)
    t.ok(services[name].environment.WAYMARK_ROLE.split(',').includes(name.replace(/-\d$/, '')), name)
  }
})

test('haproxy takes its file', { skip: withoutHaproxy }, async (t) => {
  const { status, stderr } = spawnSync('haproxy', ['-c', '-f', HAPROXY_FILE], { encoding: 'utf8' })
  t.equal(status, 0, stderr)
})
