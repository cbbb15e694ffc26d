import { test } from 'tap'
import { bridgeFinding, listenerFinding } from '../../src/cli/doctor/devices.ts'

test('doctor names each listener of devices, and those that were refused', async (t) => {
  const listener = { protocol: 'teltonika' as const, port: 5027, connections: 40, unknown: [] }
  t.match(listenerFinding(listener), {
    area: 'devices',
    ok: true,
    what: /^teltonika listens on port 5027, 40 connections$/,
  })
  const unknown = Array.from({ length: 6 }, (_, i) => `teltonika 35630704244101${i}`)
  t.match(listenerFinding({ ...listener, unknown }), {
    ok: false,
    what: 'teltonika listens on port 5027, 40 connections, 6 refused within the last hour: 356307042441010, 356307042441011, 356307042441012, 356307042441013, 356307042441014',
    advice: 'create trackers with these as externalId, or give --devices-key an ingest key with autoCreate',
  })
})

test('doctor says that no device is served while the key of the flag has ended', async (t) => {
  const problem = '--devices-key is no key, or one that has ended'
  t.match(listenerFinding({ protocol: 'gt06', port: 5023, connections: 2, unknown: [], problem }), {
    ok: false,
    what: `gt06 listens on port 5023 (${problem}), 2 connections`,
    advice: /--devices-key/,
  })
})

test('doctor says of a broker whether it serves, and of what waits', async (t) => {
  const bridge = { broker: 'mqtt.example.com:8883', isConnected: true, waiting: 0, unknown: [] }
  t.match(bridgeFinding(bridge), {
    ok: true,
    what: /^MQTT broker mqtt.example.com:8883 is connected, 0 messages wait$/,
  })
  t.match(bridgeFinding({ ...bridge, waiting: 3, unknown: ['mqtt owntracks/jane/phone'] }), {
    ok: false,
    what: /3 messages wait, 1 refused within the last hour: owntracks\/jane\/phone$/,
    advice: /--mqtt-key/,
  })
  t.match(bridgeFinding({ ...bridge, isConnected: false, problem: 'connect ECONNREFUSED' }), {
    ok: false,
    what: /is not connected \(connect ECONNREFUSED\), 0 messages wait$/,
    advice: /check --mqtt,/,
  })
})
