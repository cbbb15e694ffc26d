import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks'
import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Every metric of `/metrics`, by the name that operators know. */
export interface Metrics {
  points: Counter<'result'>
  appendSeconds: Histogram
  consumerLagEvents: Gauge<'consumer' | 'partition'>
  consumerLagSeconds: Gauge<'consumer' | 'partition'>
  liveClients: Gauge
  liveConflated: Counter
  transitions: Counter<'type'>
  deliveries: Counter<'outcome'>
  mails: Counter<'outcome'>
  engineUp: Gauge<'engine'>
  httpRequests: Counter<'method' | 'route' | 'status'>
  httpSeconds: Histogram<'method' | 'route'>
  sockets: Gauge<'channel'>
  processesStuck: Gauge
  scavengesFailed: Gauge
  mqttMessages: Counter<'result'>
  mqttConnected: Gauge<'broker'>
  mqttWaiting: Gauge<'broker'>
  /** Runs before each scrape: for numbers that are looked up rather than counted. If it fails, its numbers stay. */
  beforeScrape(collect: () => unknown): void
  text(): Promise<string>
  contentType: string
  close(): void
}

const APPEND_BUCKETS = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 5]
const REQUEST_BUCKETS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10]

/** Interval of the timer that measures how late timers run. */
const LOOP_RESOLUTION_MS = 10

export const createMetrics = (): Metrics => {
  const registry = new Registry()
  const registers = [registry]
  const collectors: (() => unknown)[] = []
  const loopDelay = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS })
  loopDelay.enable()
  eventLoopDelay(registry, loopDelay)
  processMetrics(registry)
  const counter = <Label extends string>(name: string, help: string, labelNames: Label[] = []): Counter<Label> =>
    new Counter({ name, help, labelNames, registers })
  const gauge = <Label extends string>(name: string, help: string, labelNames: Label[] = []): Gauge<Label> =>
    new Gauge({ name, help, labelNames, registers })
  const histogram = <Label extends string>(
    name: string,
    help: string,
    buckets: number[],
    labelNames: Label[] = [],
  ): Histogram<Label> => new Histogram({ name, help, buckets, labelNames, registers })
  const metrics: Metrics = {
    points: counter('waymark_points_total', 'Points by outcome; accepted ones are acknowledged and durable.', [
      'result',
    ]),
    appendSeconds: histogram('waymark_append_seconds', 'Time that appends of points to the log take.', APPEND_BUCKETS),
    consumerLagEvents: gauge('waymark_consumer_lag_events', 'Events of the log that a consumer has not stored.', [
      'consumer',
      'partition',
    ]),
    consumerLagSeconds: gauge(
      'waymark_consumer_lag_seconds',
      'Age of the oldest event that a consumer has not stored.',
      ['consumer', 'partition'],
    ),
    liveClients: gauge('waymark_live_clients', 'Open connections of the live channel.'),
    liveConflated: counter('waymark_live_conflated_total', 'Positions replaced before a client got them.'),
    transitions: counter('waymark_transitions_total', 'Geofence transitions.', ['type']),
    deliveries: counter('waymark_deliveries_total', 'Attempts of automations by outcome.', ['outcome']),
    mails: counter('waymark_mails_total', 'Attempts to send a mail, by outcome.', ['outcome']),
    engineUp: gauge('waymark_engine_up', 'Whether a storage engine answers (1) or not (0).', ['engine']),
    httpRequests: counter('waymark_http_requests_total', 'Requests answered.', ['method', 'route', 'status']),
    httpSeconds: histogram(
      'waymark_http_request_seconds',
      'Time from the head of a request to its answer.',
      REQUEST_BUCKETS,
      ['method', 'route'],
    ),
    sockets: gauge('waymark_sockets', 'Open WebSockets.', ['channel']),
    ...lookedUp(registers),
    beforeScrape: (collect) => void collectors.push(collect),
    text: async () => {
      await Promise.allSettled(collectors.map(async (collect) => collect()))
      return registry.metrics()
    },
    contentType: registry.contentType,
    close: () => {
      loopDelay.disable()
      registry.clear()
    },
  }
  beginAtZero(metrics)
  return metrics
}

/** Values that parts of the service report on request, and the fate of messages. */
const lookedUp = (
  registers: Registry[],
): Pick<Metrics, 'processesStuck' | 'scavengesFailed' | 'mqttMessages' | 'mqttConnected' | 'mqttWaiting'> => {
  const ofBroker = (name: string, help: string) => new Gauge({ name, help, labelNames: ['broker'] as const, registers })
  const help = 'Messages of an MQTT broker by what became of them.'
  return {
    processesStuck: new Gauge({
      name: 'waymark_processes_stuck',
      help: 'Processes that failed five times in a row.',
      registers,
    }),
    scavengesFailed: new Gauge({
      name: 'waymark_scavenges_failed',
      help: 'Newest scavenges of the log in a row that did not complete.',
      registers,
    }),
    mqttMessages: new Counter({
      name: 'waymark_mqtt_messages_total',
      help,
      labelNames: ['result'] as const,
      registers,
    }),
    mqttConnected: ofBroker('waymark_mqtt_connected', 'Whether the MQTT broker is connected (1) or not (0).'),
    mqttWaiting: ofBroker('waymark_mqtt_waiting', 'Messages of the MQTT broker that are not acknowledged.'),
  }
}

/** Series that exist from the start give a rate for the first minute. */
const beginAtZero = ({ points, transitions, deliveries, mails }: Metrics): void => {
  for (const result of ['accepted', 'duplicate', 'rejected']) points.inc({ result }, 0)
  for (const type of ['entry', 'leave']) transitions.inc({ type }, 0)
  for (const outcome of ['succeeded', 'failed', 'dead', 'skipped']) deliveries.inc({ outcome }, 0)
  for (const outcome of ['sent', 'failed', 'refused', 'unsent']) mails.inc({ outcome }, 0)
}

/** Without the gauges named like a counter: the same numbers exist without `_total`, by type. */
const processMetrics = (registry: Registry): void => {
  collectDefaultMetrics({ register: registry })
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`)
}

/** The histogram holds the whole time from one run of its timer to the next, of which the first 10 ms are no delay. */
export const eventLoopDelay = (
  registry: Registry,
  delay: Pick<IntervalHistogram, 'percentile' | 'max' | 'reset'>,
): void => {
  // The label is not `quantile`: that name belongs to summaries, and a gauge that has it is no valid metric.
  const statistics: [string, () => number][] = [
    ['p50', () => delay.percentile(50)],
    ['p99', () => delay.percentile(99)],
    ['max', () => delay.max],
  ]
  new Gauge({
    name: 'waymark_event_loop_delay_seconds',
    help: 'How late timers run since the last scrape: the median, the 99th percentile, the longest.',
    labelNames: ['statistic'],
    registers: [registry],
    collect() {
      for (const [statistic, nanoseconds] of statistics)
        this.set({ statistic }, Math.max(0, nanoseconds() / 1e9 - LOOP_RESOLUTION_MS / 1e3))
      delay.reset()
    },
  })
}
