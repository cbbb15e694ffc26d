import { distance } from '@turf/turf'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { realDay, tracksOf } from './real-day.ts'
import { type Answer, call, type Json, signUp, until } from './service.ts'
import type { Receiver } from './webhook-receiver.ts'

/** A fix of the courier's phone. */
interface Fix {
  recordedAt: number
  lat: number
  lng: number
}

interface Stop {
  customer: string
  lat: number
  lng: number
}

/** What a company's day needs of the service, which may be killed and started again at any moment. */
export interface Office {
  /** Where it listens now. */
  service(): { url: string; data: string }
  /** Called with each request that is about to be sent; resolves when the service answers again. */
  disturb(): Promise<void>
}

/** What has come of the day, without ids and times: two days with the same work have the same. */
export type Outcome = { [what: string]: Json }

const RADIUS_METERS = 120
const SECRET = 'SECRET-48600111222'
const PASSWORD = 'Correct-horse-9-battery'
/** Width and height of the smallest picture. */
const PHOTO = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
  'base64',
)

/** A real trace, and three places on its way where customers are. */
export const courierRound = async (t: Test, now: number): Promise<{ fixes: Fix[]; stops: Stop[] }> => {
  const { fixes } = await realDay(t, 20_000, now)
  const [track] = [...tracksOf(fixes).values()].sort((a, b) => b.length - a.length)
  const round = track.slice(0, 600)
  const stops = [0.2, 0.5, 0.8].map((share, i): Stop => {
    const { lat, lng } = round[Math.floor(round.length * share)]
    return { customer: `C-${i + 1}`, lat, lng }
  })
  return { fixes: round, stops }
}

/** How often each stop is entered, computed fix by fix. */
export const entriesOf = ({ fixes, stops }: { fixes: Fix[]; stops: Stop[] }): { [customer: string]: number } =>
  Object.fromEntries(
    stops.map(({ customer, lat, lng }) => {
      const inside = fixes.map((fix) => distance([lng, lat], [fix.lng, fix.lat], { units: 'meters' }) <= RADIUS_METERS)
      return [customer, inside.filter((is, i) => is && inside[i - 1] !== true).length]
    }),
  )

/** One working day of a delivery company, through the API alone. */
export class CompanyDay {
  private readonly office: Office
  private readonly receiver: Receiver
  private readonly round: { fixes: Fix[]; stops: Stop[] }
  private readonly tokens = new Map<string, string>()
  private readonly ids = new Map<string, string>()
  private keys = 0
  /** Who founded the company; empty before. */
  owner = { email: '', password: '' }

  constructor(office: Office, receiver: Receiver, round: { fixes: Fix[]; stops: Stop[] }) {
    this.office = office
    this.receiver = receiver
    this.round = round
  }

  async live(): Promise<Outcome> {
    await this.found()
    await this.describeWork()
    await this.automate()
    await this.plan()
    await this.drive()
    await this.work()
    return this.outcome()
  }

  /** Sends a request until it is answered: again after the service has ended, under the same key. */
  private async send(who: string, method: string, path: string, body?: unknown, form?: string): Promise<Json> {
    const headers = {
      ...(method === 'POST' && { 'idempotency-key': `day-${++this.keys}` }),
      ...(form !== undefined && { 'content-type': `multipart/form-data; boundary=${form}` }),
    }
    const disturbed = method === 'GET' ? undefined : this.office.disturb()
    let answer: Answer | undefined
    await until(`${method} ${path}`, async () => {
      answer = await call(this.office.service(), method, path, { token: this.tokens.get(who), body, headers }).catch(
        () => undefined,
      )
      return answer !== undefined && answer.status !== 503 && answer.json?.code !== 'in_progress'
    })
    await disturbed
    if (answer === undefined || answer.status >= 300)
      throw new Error(`${method} ${path}: ${answer?.status} ${answer?.text.slice(0, 400)}`)
    return answer.json
  }

  private async make(name: string, path: string, body: object): Promise<string> {
    const { _id } = (await this.send('owner', 'POST', path, body)).data
    this.ids.set(name, _id)
    return _id
  }

  private id(name: string): string {
    const id = this.ids.get(name)
    if (id === undefined) throw new Error(`nothing is called ${name}`)
    return id
  }

  private async found(): Promise<void> {
    const owner = await signUp(this.office.service(), 'Parcels')
    this.owner = { email: owner.email, password: owner.password }
    this.tokens.set('owner', owner.token)
    this.ids.set('hub', owner.hubId)
    await this.make('depot', '/hub', { name: 'Depot', lat: 52, lng: 21 })
    await this.make('customers', '/data-type', {
      name: 'Clients',
      primaryKey: 'number',
      fields: [
        { name: 'number', type: 'text' },
        { name: 'address', type: 'text' },
        { name: 'phone', type: 'text' },
      ],
    })
    await this.make('rounds', '/data-type', {
      name: 'Rounds',
      primaryKey: 'courier',
      fields: [
        { name: 'courier', type: 'text' },
        { name: 'state', type: 'text' },
      ],
    })
    const roles = (await this.send('owner', 'GET', '/roles?limit=100')).data
    const fieldUser = roles.find(({ key }: Json) => key === 'fieldUser')
    const planner = roles.find(({ key }: Json) => key === 'planner')
    await this.make('clerk role', '/role', {
      name: 'Clerk',
      permissions: [...new Set([...planner.permissions, 'view/audit-log', 'view/data', 'view/data-type'])],
      permissionDetails: [{ permissionName: 'view/data', dataTypeId: this.id('customers'), hiddenFields: ['phone'] }],
    })
    for (const [name, roleId] of [
      ['courier', fieldUser._id],
      ['clerk', this.id('clerk role')],
    ])
      await this.hire(name, roleId)
  }

  private async hire(name: string, roleId: string): Promise<void> {
    const email = `${name}.${this.id('hub')}@example.com`
    const hubId = [this.id('hub'), this.id('depot')]
    await this.make(name, '/user', { name, email, password: PASSWORD, roleId, hubId })
    const login = await this.send('', 'POST', '/auth/login', { email, password: PASSWORD })
    this.tokens.set(name, login.token)
  }

  private async describeWork(): Promise<void> {
    for (const { customer } of this.round.stops)
      await this.make(customer, '/data', {
        dataTypeId: this.id('customers'),
        values: { number: customer, address: `Street of ${customer}`, phone: SECRET },
      })
    await this.make('delivery', '/flow', {
      name: 'Parcel',
      isActive: true,
      steps: [
        {
          id: 'door',
          name: 'At the door',
          components: [
            { id: 'place', type: 'text', label: 'Address' },
            { id: 'state', type: 'text', label: 'State' },
            { id: 'receiver', type: 'text', label: 'Receiver', required: true },
            { id: 'photo', type: 'photo', label: 'Photo', required: true, filesMax: 2 },
          ],
        },
      ],
      dataSource: { dataTypeId: this.id('customers'), mapping: { place: 'address' } },
    })
    await this.make('invoice', '/flow', {
      name: 'Invoice',
      isActive: true,
      steps: [{ id: 'one', name: 'One', components: [{ id: 'of', type: 'text', label: 'Of' }] }],
    })
    const geofenceGroupId = await this.make('stops', '/geofence-group', { name: 'Stops' })
    for (const { customer, lat, lng } of this.round.stops)
      await this.make(`fence ${customer}`, '/geofence', {
        name: customer,
        geofenceGroupId,
        center: { lat, lng },
        radius: RADIUS_METERS,
      })
  }

  private async automate(): Promise<void> {
    const ofParcels = { 'task.flowId': this.id('delivery') }
    const details = async (name: string, event: string, automationType: string, fields: object, more: object) => {
      const body = { name, event, automationType, rules: { fields }, automationDetails: more }
      const { data } = await this.send('owner', 'POST', '/automation', body)
      // Its secret is told once: whoever lost the answer asks for another.
      const isTold = automationType !== 'webhook' || data.automationDetails.secret !== undefined
      const rotate = () => this.send('owner', 'POST', `/automation/${data._id}/rotate-secret`)
      const { secret } = (isTold ? data : (await rotate()).data).automationDetails
      if (secret !== undefined) this.receiver.secrets.set(data._id, secret)
    }
    const { url } = this.receiver
    await details('assign', 'onTaskCreated', 'assignTask', ofParcels, { assigneeIds: [this.id('courier')] })
    await details('state', 'onTaskAssigned', 'updateTask', ofParcels, { components: { state: 'on its way' } })
    await details('invoice', 'onTaskFinished', 'createTask', ofParcels, {
      flowId: this.id('invoice'),
      hubId: this.id('hub'),
      task: { title: 'Invoice', components: { of: { ref: 'task.title' } } },
    })
    await details(
      'office',
      'onTaskCreated',
      'moveTask',
      { 'task.flowId': this.id('invoice') },
      {
        hubId: this.id('depot'),
      },
    )
    await details(
      'round',
      'onStartTrip',
      'createOrUpdateDataSource',
      {},
      {
        dataTypeId: this.id('rounds'),
        values: { courier: { ref: 'user.name' }, state: 'on the road' },
      },
    )
    await details('told', 'onTaskFinished', 'webhook', ofParcels, { url })
    await details('seen', 'onGeofenceEntry', 'webhook', { geofenceGroupId: this.id('stops') }, { url })
    await details('note', 'onTaskFinished', 'notification', ofParcels, {
      channel: 'inApp',
      to: this.id('clerk'),
      subject: 'Delivered',
      text: '{{task.title}} by {{task.components.receiver}}',
    })
    await details('mail', 'onTaskFinished', 'notification', ofParcels, {
      channel: 'email',
      to: this.id('clerk'),
      subject: 'Delivered: {{task.title}}',
      text: 'Received by {{task.components.receiver}}.',
    })
  }

  /** Schedules make the morning's tasks. */
  private async plan(): Promise<void> {
    const startTime = new Date(Date.now() + 3_600_000).toISOString()
    for (const { customer, lat, lng } of this.round.stops)
      await this.make(`schedule ${customer}`, '/task/schedule', {
        name: `Morning ${customer}`,
        flowId: this.id('delivery'),
        rrule: 'FREQ=DAILY;COUNT=1',
        timeZone: 'Europe/Warsaw',
        startTime,
        task: {
          title: `Parcel of ${customer}`,
          hubId: this.id('hub'),
          lat,
          lng,
          leadMinutes: 120,
          window: { afterMinutes: 0, lengthMinutes: 60 },
          dataSource: { dataTypeId: this.id('customers'), dataId: this.id(customer) },
        },
      })
    const path = `/tasks?flowId=${this.id('delivery')}&state=assigned`
    await until('the tasks to be assigned', async () => {
      const { data } = await this.send('owner', 'GET', path)
      return data.filter(({ components }: Json) => components.state === 'on its way').length === this.round.stops.length
    })
  }

  private async drive(): Promise<void> {
    const { fixes } = this.round
    for (let from = 0; from < fixes.length; from += 100) {
      const points = fixes.slice(from, from + 100).map(({ recordedAt, lat, lng }) => ({ recordedAt, lat, lng }))
      await this.send('courier', 'POST', '/location-history/bulk', { points })
    }
  }

  /** The courier starts and finishes each task, with a photo. */
  private async work(): Promise<void> {
    const { data } = await this.send('courier', 'GET', '/tasks?assigneeId=me&sortBy=title')
    for (const { _id } of data) {
      await this.send('courier', 'POST', `/task/${_id}/start`, {})
      const boundary = 'waymark-day'
      const part = `--${boundary}\r\ncontent-disposition: form-data; name=`
      const form = Buffer.concat([
        Buffer.from(`${part}"componentId"\r\n\r\nphoto\r\n${part}"file"; filename="door.png"\r\n\r\n`),
        PHOTO,
        Buffer.from(`\r\n--${boundary}--\r\n`),
      ])
      const file = await this.send('courier', 'POST', `/task/${_id}/files`, form, boundary)
      const task = (await this.send('courier', 'GET', `/task/${_id}`)).data
      const photo = [...new Set([...(task.components.photo ?? []), file.data._id])]
      await this.send('courier', 'POST', `/task/${_id}/finish`, { components: { receiver: 'Ada', photo } })
    }
  }

  /** Waits until all that is owed has come, and says what there is. */
  private async outcome(): Promise<Outcome> {
    const stops = this.round.stops.length
    const entries = Object.values(entriesOf(this.round)).reduce((sum, count) => sum + count, 0)
    const told = (type: string): Json[] => {
      const own = this.receiver.deliveries.filter(({ body }) => body.type === type)
      return [...new Map(own.map((delivery) => [delivery.id, delivery.body.data])).values()]
    }
    const page = async (who: string, path: string): Promise<Json> => this.send(who, 'GET', path)
    const inDepot = `/tasks?flowId=${this.id('invoice')}&hubId=${this.id('depot')}`
    const conditions: { [what: string]: () => Promise<boolean> } = {
      invoices: async () => (await page('owner', inDepot)).total === stops,
      'the round': async () => (await page('owner', `/data?dataTypeId=${this.id('rounds')}`)).total === 1,
      'finished tasks at the receiver': async () => told('onTaskFinished').length === stops,
      'entries at the receiver': async () => told('onGeofenceEntry').length === entries,
      notifications: async () => (await page('clerk', '/notifications')).total === stops,
      mails: async () => this.mails().length === stops,
    }
    for (const [what, isThere] of Object.entries(conditions)) await until(what, isThere)
    const tasks = (await page('owner', `/tasks?flowId=${this.id('delivery')}&sortBy=title`)).data
    const histories: Json[] = []
    for (const { _id, title } of tasks) {
      const { data } = await page('owner', `/task/${_id}/history`)
      histories.push([title, ...data.map(({ type, actor }: Json) => `${type} by ${actor.type}`).sort()])
    }
    const invoices = (await page('owner', inDepot)).data
    const audited = (await page('owner', '/audit-log?noun=task&limit=500')).data
    return {
      tasks: tasks.map(({ title, state, components: { photo, ...components }, createdBy }: Json) => [
        title,
        state,
        components,
        photo.length,
        createdBy.type,
      ]),
      histories,
      invoices: invoices.map(({ state, components, createdBy }: Json) => [components.of, state, createdBy.type]).sort(),
      rounds: (await page('owner', `/data?dataTypeId=${this.id('rounds')}`)).data.map(({ values }: Json) => values),
      finished: told('onTaskFinished')
        .map(({ task }) => task.title)
        .sort(),
      entries: told('onGeofenceEntry')
        .map(({ geofence }) => geofence.name)
        .sort(),
      badDeliveries: this.receiver.bad,
      notifications: (await page('clerk', '/notifications')).data.map(({ text }: Json) => text).sort(),
      mails: this.mails().sort(),
      audited: [...new Set(audited.map(({ action, actor }: Json) => `${action} by ${actor.type}`))].sort(),
      hiddenSeenByClerk: await this.seenByClerk(),
    }
  }

  /** Ways out that show the clerk what their role hides: none. */
  private async seenByClerk(): Promise<string[]> {
    const first = (await this.send('owner', 'GET', `/tasks?flowId=${this.id('delivery')}`)).data[0]._id
    const ways = [
      '/data?limit=100',
      `/data/${this.id('C-1')}`,
      '/data/type/Clients/C-1',
      '/tasks?limit=100',
      `/task/${first}/history`,
      '/audit-log?limit=500',
      '/notifications',
      '/automation-log?limit=100',
    ]
    const seen: string[] = []
    for (const way of ways) if (JSON.stringify(await this.send('clerk', 'GET', way)).includes(SECRET)) seen.push(way)
    const owners = JSON.stringify(await this.send('owner', 'GET', `/data/${this.id('C-1')}`))
    if (!owners.includes(SECRET)) seen.push('not even the owner sees it')
    return seen
  }

  /** Subjects of the mails, each once: one that was sent again has the same id, by which mail programs know it. */
  private mails(): string[] {
    const folder = join(this.office.service().data, 'mail')
    const byId = new Map<string, string>()
    for (const name of readdirSync(folder)) {
      const text = readFileSync(join(folder, name), 'utf8')
      const [, subject] = /^Subject: (Delivered: .*?)\r?$/m.exec(text) ?? []
      const [, id] = /^Message-ID: (.*?)\r?$/im.exec(text) ?? []
      if (subject !== undefined) byId.set(id ?? name, subject)
    }
    return [...byId.values()]
  }
}
