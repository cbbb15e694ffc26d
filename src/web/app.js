/* global maplibregl */
const api = '/api/v3'
const byId = (id) => document.getElementById(id)
const fleet = new Map()
const fenceNames = new Map()
let token
let map
let moves = 0
let cursor
let retryMs = 500

maplibregl.setWorkerUrl('/web/maplibre-gl-worker.js')

const demo = document.querySelector('meta[name=demo-login]').content
if (demo)
  Object.entries(JSON.parse(demo)).forEach(([name, value]) => {
    byId('login').elements[name].value = value
  })

byId('login').addEventListener('submit', async (event) => {
  event.preventDefault()
  const { email, password } = Object.fromEntries(new FormData(event.target))
  const answer = await post('/auth/login', { email, password })
  if (!answer.status) {
    byId('problem').textContent = answer.message
    return
  }
  token = answer.token
  byId('organization').textContent = answer.organizations.find((one) => one.isCurrent)?.organizationName ?? ''
  byId('login').hidden = true
  byId('view').hidden = false
  await openMap()
  await drawFences()
  connect()
})

async function post(path, body) {
  const response = await fetch(api + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  })
  return response.json()
}

async function get(path) {
  const response = await fetch(api + path, { headers: { authorization: `Bearer ${token}` } })
  if (!response.ok) throw new Error(`${path}: ${response.status}`)
  return response.json()
}

const empty = { type: 'FeatureCollection', features: [] }

function openMap() {
  const sources = { fences: empty, trail: empty, fleet: empty }
  map = new maplibregl.Map({
    container: 'map',
    center: [21.01, 52.23],
    zoom: 10.5,
    attributionControl: false,
    style: {
      version: 8,
      sources: Object.fromEntries(Object.entries(sources).map(([name, data]) => [name, { type: 'geojson', data }])),
      layers: [
        { id: 'ground', type: 'background', paint: { 'background-color': '#eef1f4' } },
        { id: 'fence-areas', type: 'fill', source: 'fences', paint: { 'fill-color': '#0b6bcb', 'fill-opacity': 0.12 } },
        { id: 'fence-edges', type: 'line', source: 'fences', paint: { 'line-color': '#0b6bcb', 'line-width': 1.5 } },
        { id: 'trail', type: 'line', source: 'trail', paint: { 'line-color': '#c2410c', 'line-width': 3 } },
        {
          id: 'fleet',
          type: 'circle',
          source: 'fleet',
          paint: {
            'circle-radius': 6,
            'circle-color': ['match', ['get', 'status'], 'online', '#18794e', 'stale', '#b7791f', '#8a97a3'],
            'circle-stroke-color': '#fff',
            'circle-stroke-width': 2,
          },
        },
      ],
    },
  })
  map.addControl(new maplibregl.NavigationControl())
  map.on('click', 'fleet', (event) => showTrail(event.features[0].properties))
  map.on('mouseenter', 'fleet', () => {
    map.getCanvas().style.cursor = 'pointer'
  })
  map.on('mouseleave', 'fleet', () => {
    map.getCanvas().style.cursor = ''
  })
  return new Promise((loaded) => map.on('load', loaded))
}

async function drawFences() {
  const features = []
  for (let next = ''; next !== null; ) {
    const page = await get(`/geofences?limit=500${next && `&cursor=${encodeURIComponent(next)}`}`).catch(() => ({
      data: [],
      nextCursor: null,
    }))
    for (const fence of page.data) {
      fenceNames.set(fence._id, fence.name)
      features.push({
        type: 'Feature',
        properties: { name: fence.name },
        geometry: fence.center ? circle(fence.center, fence.radius) : fence.geometry,
      })
    }
    next = page.nextCursor
  }
  map.getSource('fences').setData({ type: 'FeatureCollection', features })
}

function circle({ lat, lng }, radius) {
  const ring = Array.from({ length: 65 }, (_, i) => {
    const angle = (i / 64) * 2 * Math.PI
    return [
      lng + (radius * Math.sin(angle)) / (111195 * Math.cos((lat * Math.PI) / 180)),
      lat + (radius * Math.cos(angle)) / 111195,
    ]
  })
  return { type: 'Polygon', coordinates: [ring] }
}

function connect() {
  const socket = new WebSocket(`${location.origin.replace('http', 'ws')}${api}/live`)
  socket.onopen = () => {
    socket.send(JSON.stringify({ type: 'auth', token }))
    socket.send(
      JSON.stringify({
        type: 'subscribe',
        id: 'map',
        channels: ['positions', 'geofence'],
        interval: 250,
        since: cursor,
      }),
    )
  }
  socket.onmessage = ({ data }) => hear(JSON.parse(data))
  socket.onclose = () => {
    byId('state').textContent = 'reconnecting'
    setTimeout(connect, retryMs)
    retryMs = Math.min(retryMs * 2, 15_000)
  }
}

function hear(message) {
  if (message.cursor) cursor = message.cursor
  if (message.type === 'snapshot') {
    byId('state').textContent = 'live'
    retryMs = 500
  }
  if (message.type === 'positions') moves += message.positions.length
  for (const position of message.positions ?? []) fleet.set(position.trackerId, position)
  for (const trackerId of message.gone ?? []) fleet.delete(trackerId)
  if (message.type === 'event') listCrossing(message.event)
  if (message.positions || message.gone) drawFleet()
}

let fitted = false
function drawFleet() {
  const features = [...fleet.values()].map(({ trackerId, name, status, lat, lng }) => ({
    type: 'Feature',
    properties: { trackerId, name, status },
    geometry: { type: 'Point', coordinates: [lng, lat] },
  }))
  map.getSource('fleet').setData({ type: 'FeatureCollection', features })
  byId('count').textContent = String(fleet.size)
  byId('moves').textContent = String(moves)
  if (fitted || features.length === 0) return
  fitted = true
  const bounds = new maplibregl.LngLatBounds()
  for (const { geometry } of features) bounds.extend(geometry.coordinates)
  map.fitBounds(bounds, { padding: 60, maxZoom: 13, animate: false })
}

function listCrossing({ type, trackerId, geofenceId, at }) {
  const item = document.createElement('li')
  item.className = type
  const time = document.createElement('time')
  time.dateTime = at
  time.textContent = new Date(at).toLocaleTimeString()
  item.append(
    `${fleet.get(trackerId)?.name ?? trackerId} ${type === 'entry' ? 'entered' : 'left'} ${fenceNames.get(geofenceId) ?? geofenceId} `,
    time,
  )
  byId('crossings').prepend(item)
  while (byId('crossings').children.length > 100) byId('crossings').lastChild.remove()
}

async function showTrail({ trackerId, name }) {
  const from = new Date(Date.now() - 3_600_000).toISOString()
  const trail = await get(`/location-histories?trackerId=${trackerId}&from=${from}&format=geojson&simplify=5`)
  const coordinates = trail.features.flatMap(({ geometry }) =>
    geometry.type === 'Point' ? [geometry.coordinates] : geometry.coordinates,
  )
  map.getSource('trail').setData({ type: 'Feature', properties: {}, geometry: { type: 'LineString', coordinates } })
  byId('trail').textContent =
    `${name}: ${coordinates.length} ${coordinates.length === 1 ? 'point' : 'points'} in the last hour`
}
