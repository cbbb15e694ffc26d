import type { Test } from 'tap'
import { askControl } from '../../src/cli/control-socket.ts'
import { IngestClient } from '../../src/cli/ingest-client.ts'
import { png } from './pictures.ts'
import { type RealDay, realDay } from './real-day.ts'
import { allPages, allRows, ask, call, type Json, type Service, signUp, until } from './service.ts'
import { checkHistory, checkTransitions, prepare, type Setting } from './stream-checks.ts'
import { openReceiver, type Receiver } from './webhook-receiver.ts'

/** An installation with something of everything. Part of the day is yet to be sent. */
export interface LivedIn {
  day: RealDay
  sent: RealDay
  setting: Setting
  receiver: Receiver
  token: string
  revoked: string
  email: string
  password: string
  organizationId: string
  /** Path of the uploaded picture. */
  logo: string
}

/** With it the location log keeps nothing that is stored elsewhere. */
export const FORGETFUL = ['--location-log-days', '0']

/**
 * Fills an installation that was started with FORGETFUL: points, transitions, trips, delivered webhooks, an uploaded logo,
 * a session that was ended. Its location log is truncated, then some more points come.
 */
export const liveIn = async (t: Test, service: Service, fixes = 400): Promise<LivedIn> => {
  const whole = await realDay(t, fixes, Date.now())
  const day = { ...whole, fixes: [...whole.fixes].sort((a, b) => a.recordedAt - b.recordedAt) }
  const receiver = await openReceiver(t)
  const { token, email, password, organizationId } = await signUp(service)
  const setting = await prepare(service, token, day, receiver)
  const picture = { token, body: png(), headers: { 'content-type': 'image/png' } }
  const uploaded = await ask(service, 'PUT', '/organization/logo', picture)
  const revoked = (await ask(service, 'POST', '/auth/login', { body: { email, password } })).token
  await ask(service, 'POST', '/auth/logout', { token: revoked })
  const half = Math.floor(day.fixes.length / 2)
  await sendFixes(service, setting, day.fixes.slice(0, half))
  await settled(t, service, setting, { ...day, fixes: day.fixes.slice(0, half) })
  const swept = await askControl(service.data, { command: 'sweep' })
  t.match(swept, { ok: true, report: [{ partition: Number }] }, 'the log of locations is truncated')
  const sent = { ...day, fixes: day.fixes.slice(0, Math.floor((day.fixes.length * 3) / 4)) }
  await sendFixes(service, setting, sent.fixes.slice(half))
  await settled(t, service, setting, sent)
  await atRest(service)
  return {
    day,
    sent,
    setting,
    receiver,
    token,
    revoked,
    email,
    password,
    organizationId,
    logo: uploaded.data.logo.slice('/api/v3'.length),
  }
}

/** Waits until everything that was sent has come to everybody, and compares transitions with what they must be. */
export const settled = async (t: Test, service: Service, setting: Setting, day: RealDay): Promise<void> => {
  const trackers = await checkHistory(t, service, setting, day)
  const transitions = await checkTransitions(t, service, setting, day, trackers)
  await until('webhooks', async () => {
    const runs = await allPages(service, '/automation-log', setting.token)
    return runs.length >= transitions.length && runs.every(({ status }) => status === 'succeeded')
  })
}

/** Waits until every consumer has stored all that is in the log. */
export const atRest = (service: Service): Promise<void> =>
  until('consumers to have stored everything', async () => {
    const answer = await askControl(service.data, { command: 'status' })
    const { consumers = [] } = (answer?.report ?? {}) as { consumers?: { events: number }[] }
    return consumers.length > 0 && consumers.every(({ events }) => events === 0)
  })

export const sendFixes = async (service: Service, { ingestKey }: Setting, fixes: RealDay['fixes']): Promise<void> => {
  const gateway = await IngestClient.connect(service.url, ingestKey)
  for (let at = 0; at < fixes.length; at += 100) await gateway.send(fixes.slice(at, at + 100))
  await gateway.drained()
  gateway.close()
}

/** What an installation answers of what it has. */
export const answersOf = async (
  service: Service,
  { token, logo }: Pick<LivedIn, 'token' | 'logo'>,
): Promise<{ [question: string]: Json }> => {
  const sorted = (rows: Json[]): Json[] =>
    rows.sort((a, b) => String(a._id ?? a.trackerId).localeCompare(String(b._id ?? b.trackerId)))
  const answers: { [question: string]: Json } = {}
  for (const path of [
    '/trackers',
    '/geofences',
    '/geofence-groups',
    '/automations',
    '/automation-log',
    '/users',
    '/hubs',
    '/roles',
    '/audit-log',
    '/trips',
  ])
    answers[path] = sorted(await allPages(service, path, token))
  for (const path of ['/location-histories', '/geofence-events'])
    answers[path] = sorted(await allRows(service, path, token))
  const positions = (await ask(service, 'GET', '/live-positions', { token })).data as Json[]
  answers.positions = sorted(positions.map(({ status: _status, ...position }) => position))
  // It depends on the time.
  answers['/trackers'] = answers['/trackers'].map(({ status: _status, ...tracker }: Json) => tracker)
  // How far a trip goes is stored with the matcher's state, every few seconds.
  answers['/trips'] = answers['/trips'].map(({ distance, ...trip }: Json) =>
    trip.state === 'running' ? trip : { distance, ...trip },
  )
  answers.logo = Buffer.from((await call(service, 'GET', logo)).text).toString('hex')
  return answers
}
