// The page: keeps what the live channel says, and shows it beside and on the map. It uses the public API alone.
import { bearing, distance, fenceFeature, isStep, splitTrack } from './geometry.js'
import { openLive } from './live.js'
import { openMap } from './map.js'
import { openSignIn } from './sign-in.js'
import { plainText } from './words.js'

const API = '/api/v3'
/** Above this the page subscribes to what the map shows, and draws no paths. */
const WHOLE_FLEET_MAX = 2_000
const FENCES_MAX = 5_000
const ROWS_MAX = 200
const CROSSINGS_MAX = 100
const TRAIL_POINTS_MAX = 10_000
const PATHS_MS = 60 * 60_000
const TRAIL_MS = 60 * 60_000
const TRAIL_REFRESH_MS = 10_000
const TAIL_MS = 3 * 60_000
const DRAW_MS = 200
/** Slower is standing, whatever the receiver's noise says. */
const MOVING_METERS_PER_SECOND = 1

const byId = (id) => document.getElementById(id)
const units = new Map()
const fenceNames = new Map()
let token
let map
let selectedId
let moves = 0
let isWhole = true
let isFitted = false
/** A snapshot comes in parts. */
let isSnapshotOpen = false

const demo = document.querySelector('meta[name=demo-login]').content
if (demo) {
  for (const [name, value] of Object.entries(JSON.parse(demo))) byId('login').elements[name].value = value
  byId('demo-hint').hidden = false
}

byId('filter').addEventListener('input', () => draw())
byId('deselect').addEventListener('click', () => select(undefined))

openSignIn(begin)

async function begin(session) {
  token = session.token
  byId('organization').textContent = session.organizations.find((one) => one.isCurrent)?.organizationName ?? 'Waymark'
  byId('view').hidden = false
  const handlers = { onSelect: select, onMoved: () => isWhole || live.resubscribe() }
  map = await openMap('map', handlers).catch(() => undefined)
  byId('map').hidden = map === undefined
  byId('no-map').hidden = map !== undefined
  const { data, total } = await get(`/live-positions?limit=${ROWS_MAX}`)
  isWhole = total <= WHOLE_FLEET_MAX
  if (!isWhole) fit(data.map(({ lat, lng }) => [lng, lat]))
  await drawFences()
  const live = openLive({
    url: `${location.origin.replace('http', 'ws')}${API}/live`,
    token,
    subscription: () => ({
      channels: ['positions', 'geofence'],
      interval: 250,
      ...(isWhole || !map ? {} : { bbox: map.box }),
    }),
    onMessage: hear,
    onState: showState,
    onSignedOut: () => location.reload(),
  })
  setInterval(() => selectedId && showTrail(), TRAIL_REFRESH_MS)
  if (isWhole && map) await drawPaths()
}

async function ask(path) {
  const response = await fetch(API + path, { headers: { authorization: `Bearer ${token}` } })
  if (!response.ok) throw new Error((await response.json().catch(() => ({}))).message ?? `${path}: ${response.status}`)
  return response
}

const get = async (path) => (await ask(path)).json()

/** Geofences need a permission, and an organization that has them: without, there are none to draw. */
async function drawFences() {
  const features = []
  for (let cursor = ''; cursor !== null && features.length < FENCES_MAX; ) {
    const page = await get(`/geofences?limit=500${cursor && `&cursor=${encodeURIComponent(cursor)}`}`).catch(() => ({
      data: [],
      nextCursor: null,
    }))
    for (const fence of page.data) {
      fenceNames.set(fence._id, fence.name)
      features.push(fenceFeature(fence))
    }
    cursor = page.nextCursor
  }
  map?.drawFences(features)
}

/** Where the fleet went lately: they are the streets of a map that has no others. */
async function drawPaths() {
  const from = new Date(Date.now() - PATHS_MS).toISOString()
  const { features } = await get(`/location-histories?from=${from}&format=geojson&geometry=lines&simplify=10`)
  map.drawPaths(
    features
      .filter(({ geometry }) => geometry.type === 'LineString')
      .map(({ geometry, properties }) =>
        geometry.coordinates.map((position, i) => ({
          at: Date.parse(properties.coordinateProperties.times[i]),
          position,
        })),
      ),
  )
}

function hear(message) {
  if (message.type === 'positions') moves += message.positions.length
  if (message.type === 'snapshot') {
    if (!isWhole && !isSnapshotOpen) units.clear()
    isSnapshotOpen = message.more === true
  }
  for (const position of message.positions ?? []) units.set(position.trackerId, unitOf(position))
  for (const trackerId of message.gone ?? []) units.delete(trackerId)
  if (message.type === 'event') listCrossing(message.event)
  draw()
}

/** The tracker as it is now, with what its last step says where the device is silent. */
function unitOf({ trackerId, name, status, lat, lng, speed, heading, recordedAt }) {
  const now = { at: Date.parse(recordedAt), position: [lng, lat] }
  const before = units.get(trackerId)
  const last = before?.tail.at(-1)
  const isNext = last !== undefined && now.at > last.at && isStep(last, now)
  const stepMeters = isNext ? distance(last.position, now.position) : 0
  const stepSpeed = isNext ? stepMeters / ((now.at - last.at) / 1000) : before?.speed
  const stepHeading = stepMeters > 10 ? bearing(last.position, now.position) : before?.heading
  const tail = (before?.tail ?? []).filter(({ at }) => at > now.at - TAIL_MS && at < now.at)
  return {
    trackerId,
    name,
    status,
    position: now.position,
    at: now.at,
    speed: speed ?? stepSpeed,
    heading: heading ?? stepHeading,
    tail: [...tail, now],
  }
}

let drawnAt = 0
let isDue = false
/** Draws soon: many messages are drawn together. */
function draw() {
  if (isDue) return
  isDue = true
  setTimeout(() => requestAnimationFrame(drawNow), Math.max(0, drawnAt + DRAW_MS - Date.now()))
}

function drawNow() {
  isDue = false
  drawnAt = Date.now()
  const all = [...units.values()].sort((a, b) => a.name.localeCompare(b.name))
  byId('count').textContent = String(all.length)
  byId('online').textContent = String(all.filter(({ status }) => status === 'online').length)
  byId('moving').textContent = String(all.filter(isMoving).length)
  byId('moves').textContent = String(moves)
  const wanted = plainText(byId('filter').value.trim())
  const rows = wanted === '' ? all : all.filter(({ name }) => plainText(name).includes(wanted))
  listTrackers(rows)
  showSelected()
  if (map === undefined) return listPositions(rows)
  map.drawFleet(all, selectedId)
  fit(all.map(({ position }) => position))
}

/** Shows where the fleet is, once: from then on the map is the reader's. */
function fit(positions) {
  if (isFitted || positions.length === 0) return
  isFitted = true
  map?.fit(positions)
}

const isMoving = ({ status, speed }) => status === 'online' && (speed ?? 0) >= MOVING_METERS_PER_SECOND

const speedOf = (unit) => (unit.speed === undefined ? '' : `${Math.round(isMoving(unit) ? unit.speed * 3.6 : 0)} km/h`)

const ago = (at) => {
  const seconds = Math.max(0, Math.round((Date.now() - at) / 1000))
  if (seconds < 90) return `${seconds} s ago`
  return seconds < 5_400 ? `${Math.round(seconds / 60)} min ago` : new Date(at).toLocaleString()
}

const element = (tag, { text, ...members } = {}, ...children) => {
  const made = Object.assign(document.createElement(tag), members)
  if (text !== undefined) made.textContent = text
  made.append(...children)
  return made
}

function listTrackers(rows) {
  const items = rows.slice(0, ROWS_MAX).map((unit) => {
    const item = element(
      'li',
      { className: unit.status, tabIndex: 0 },
      element('span', { text: unit.name }),
      element('span', { text: speedOf(unit) }),
    )
    item.dataset.trackerId = unit.trackerId
    item.setAttribute('aria-current', String(unit.trackerId === selectedId))
    return item
  })
  if (rows.length > ROWS_MAX)
    items.push(element('li', { className: 'quiet', text: `and ${rows.length - ROWS_MAX} more` }))
  const list = byId('trackers')
  const focused = document.activeElement?.dataset?.trackerId
  list.replaceChildren(...items)
  if (focused !== undefined) items.find(({ dataset }) => dataset.trackerId === focused)?.focus()
}

for (const type of ['click', 'keydown'])
  byId('trackers').addEventListener(type, (event) => {
    const id = event.target.closest('li')?.dataset.trackerId
    if (id !== undefined && (type === 'click' || event.key === 'Enter')) select(id, true)
  })

function listPositions(rows) {
  const cells = (unit) => {
    const [lng, lat] = unit.position
    return [unit.name, unit.status, lat.toFixed(5), lng.toFixed(5), speedOf(unit), ago(unit.at)]
  }
  byId('positions').replaceChildren(
    ...rows.slice(0, ROWS_MAX).map((unit) => element('tr', {}, ...cells(unit).map((text) => element('td', { text })))),
  )
}

function showState(state) {
  byId('state').textContent = state
  byId('state').dataset.state = state
}

function listCrossing({ type, trackerId, geofenceId, at }) {
  const list = byId('crossings')
  if (!list.querySelector('time')) list.replaceChildren()
  const what = `${units.get(trackerId)?.name ?? trackerId} ${type === 'entry' ? 'entered' : 'left'} ${fenceNames.get(geofenceId) ?? geofenceId}`
  const time = element('time', { dateTime: at, text: new Date(at).toLocaleTimeString() })
  list.prepend(element('li', { className: type }, element('span', { text: what }), ' ', time))
  while (list.children.length > CROSSINGS_MAX) list.lastChild.remove()
}

function select(trackerId, moveMap = false) {
  selectedId = trackerId
  byId('selected').hidden = trackerId === undefined
  byId('trail').textContent = ''
  map?.drawTrail([])
  if (trackerId !== undefined) showTrail()
  const unit = units.get(trackerId)
  if (moveMap && unit) map?.reveal(unit.position)
  draw()
}

function showSelected() {
  const unit = units.get(selectedId)
  if (unit === undefined) return
  const [lng, lat] = unit.position
  byId('selected-name').textContent = unit.name
  byId('selected-now').textContent = [unit.status, speedOf(unit), `${lat.toFixed(5)}, ${lng.toFixed(5)}`, ago(unit.at)]
    .filter(Boolean)
    .join(' · ')
}

/** Every point of the last hour, cut where the tracker cannot have gone from one to the next. */
async function showTrail() {
  const trackerId = selectedId
  const from = new Date(Date.now() - TRAIL_MS).toISOString()
  const query = `trackerId=${trackerId}&from=${from}&format=ndjson&fields=recordedAt,lat,lng&limit=${TRAIL_POINTS_MAX}`
  const text = await (await ask(`/location-histories?${query}`)).text()
  if (trackerId !== selectedId) return
  const points = text
    .split('\n')
    .filter(Boolean)
    .map((row) => JSON.parse(row))
    .map(({ recordedAt, lat, lng }) => ({ at: Date.parse(recordedAt), position: [lng, lat] }))
    .reverse()
  const { lines, meters } = splitTrack(points)
  map?.drawTrail(lines)
  const count = points.length === TRAIL_POINTS_MAX ? `the last ${points.length}` : points.length
  byId('trail').textContent =
    `${count} ${points.length === 1 ? 'point' : 'points'} in the last hour, ${(meters / 1000).toFixed(1)} km`
}
