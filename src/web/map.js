/* global maplibregl */
// The map: geofences, the paths of the last hour as its streets, the fleet, and the trail of one tracker.
import { isReachable, splitTrack } from './geometry.js'

const EMPTY = { type: 'FeatureCollection', features: [] }
const SOURCES = ['fences', 'labels', 'paths', 'tails', 'trail', 'fleet']
const COLORS = { online: '#34d399', stale: '#fbbf24', offline: '#94a3b8', selected: '#fb923c' }
/** Corners of an arrow that points north, of 32 by 32. */
const ARROW = [
  [16, 3],
  [26, 28],
  [16, 22],
  [6, 28],
]
const FONT = ['system-ui', 'sans-serif']
/** Width in pixels of what is so many pixels wide at zoom 0. */
const GROUND_WIDTH = [
  'interpolate',
  ['exponential', 2],
  ['zoom'],
  0,
  ['get', 'pixels'],
  24,
  ['*', ['get', 'pixels'], 2 ** 24],
]

const line = (id, source, paint, filter) => ({
  id,
  source,
  type: 'line',
  layout: { 'line-join': 'round', 'line-cap': 'round' },
  paint,
  ...(filter && { filter }),
})
const areas = ['!=', ['geometry-type'], 'LineString']
const corridors = ['==', ['geometry-type'], 'LineString']

const LAYERS = [
  { id: 'ground', type: 'background', paint: { 'background-color': '#0d1520' } },
  line('paths', 'paths', {
    'line-color': '#35506e',
    'line-width': ['interpolate', ['linear'], ['zoom'], 9, 0.8, 15, 3],
  }),
  {
    id: 'areas',
    source: 'fences',
    type: 'fill',
    filter: areas,
    paint: { 'fill-color': '#38bdf8', 'fill-opacity': 0.12 },
  },
  line('area-edges', 'fences', { 'line-color': '#38bdf8', 'line-width': 1.2, 'line-opacity': 0.8 }, areas),
  line('corridors', 'fences', { 'line-color': '#38bdf8', 'line-width': GROUND_WIDTH, 'line-opacity': 0.22 }, corridors),
  line('corridor-axes', 'fences', { 'line-color': '#38bdf8', 'line-width': 1, 'line-dasharray': [4, 4] }, corridors),
  line('tails', 'tails', { 'line-color': '#5eead4', 'line-width': 2, 'line-opacity': 0.55 }),
  line('trail', 'trail', { 'line-color': '#fb923c', 'line-width': 3 }),
  {
    id: 'labels',
    source: 'labels',
    type: 'symbol',
    layout: { 'text-field': ['get', 'name'], 'text-font': FONT, 'text-size': 12, 'text-letter-spacing': 0.05 },
    paint: { 'text-color': '#7dd3fc', 'text-halo-color': '#0d1520', 'text-halo-width': 1.5 },
  },
  {
    id: 'fleet',
    source: 'fleet',
    type: 'symbol',
    layout: {
      'icon-image': ['get', 'icon'],
      'icon-rotate': ['coalesce', ['get', 'heading'], 0],
      'icon-rotation-alignment': 'map',
      'icon-size': ['case', ['get', 'isSelected'], 1.3, 0.9],
      'icon-allow-overlap': true,
      'icon-ignore-placement': true,
      'symbol-sort-key': ['case', ['get', 'isSelected'], 1, 0],
    },
  },
  {
    id: 'names',
    source: 'fleet',
    type: 'symbol',
    minzoom: 12.5,
    layout: {
      'text-field': ['get', 'name'],
      'text-font': FONT,
      'text-size': 11,
      'text-anchor': 'top',
      'text-offset': [0, 1],
    },
    paint: { 'text-color': '#cbd5e1', 'text-halo-color': '#0d1520', 'text-halo-width': 1.5 },
  },
]

/** Undefined where the browser cannot draw a map. `onSelect` gets a tracker's id, `onMoved` is called when another part is shown. */
export const openMap = async (container, { onSelect, onMoved }) => {
  if (!hasWebGl()) return undefined
  maplibregl.setWorkerUrl('/web/maplibre-gl-worker.js')
  const map = new maplibregl.Map({
    container,
    center: [21.01, 52.23],
    zoom: 10,
    attributionControl: false,
    style: {
      version: 8,
      sources: Object.fromEntries(SOURCES.map((name) => [name, { type: 'geojson', data: EMPTY }])),
      layers: LAYERS,
    },
  })
  map.addControl(new maplibregl.NavigationControl({ visualizePitch: false }))
  map.addControl(new maplibregl.ScaleControl(), 'bottom-right')
  await new Promise((loaded) => map.once('load', loaded))
  for (const [name, color] of Object.entries(COLORS)) {
    map.addImage(`arrow-${name}`, icon(color, ARROW), { pixelRatio: 2 })
    map.addImage(`dot-${name}`, icon(color), { pixelRatio: 2 })
  }
  map.on('click', 'fleet', ({ features }) => onSelect(features[0].properties.trackerId))
  map.on('mouseenter', 'fleet', () => map.getCanvas().classList.add('pointing'))
  map.on('mouseleave', 'fleet', () => map.getCanvas().classList.remove('pointing'))
  map.on('moveend', onMoved)
  return new FleetMap(map)
}

class FleetMap {
  constructor(map) {
    this.map = map
  }

  drawFences(features) {
    this.set('fences', features)
    this.set(
      'labels',
      features.map(({ properties, labelAt }) => ({
        type: 'Feature',
        properties,
        geometry: { type: 'Point', coordinates: labelAt },
      })),
    )
  }

  /** `tracks`: lists of `{at, position}`, in order of time, some left out. */
  drawPaths(tracks) {
    this.set('paths', linesOf(tracks, isReachable))
  }

  /** `units`: `{trackerId, name, status, position, heading?, tail}`. */
  drawFleet(units, selectedId) {
    this.set(
      'fleet',
      units.map(({ trackerId, name, status, position, heading }) => {
        const isSelected = trackerId === selectedId
        const icon = `${heading === undefined ? 'dot' : 'arrow'}-${isSelected ? 'selected' : status}`
        const properties = { trackerId, name, heading, icon, isSelected }
        return { type: 'Feature', properties, geometry: { type: 'Point', coordinates: position } }
      }),
    )
    this.set('tails', linesOf(units.map(({ tail }) => tail)))
  }

  drawTrail(lines) {
    this.set('trail', [{ type: 'Feature', properties: {}, geometry: { type: 'MultiLineString', coordinates: lines } }])
  }

  /** Shows all of these positions. */
  fit(positions) {
    const bounds = new maplibregl.LngLatBounds()
    for (const position of positions) bounds.extend(position)
    this.map.fitBounds(bounds, { padding: 50, maxZoom: 14, animate: false })
  }

  /** Moves there, unless it is in sight. */
  reveal(position) {
    if (!this.map.getBounds().contains(position)) this.map.easeTo({ center: position })
  }

  /** What is shown: west, south, east, north. */
  get box() {
    const [[west, south], [east, north]] = this.map.getBounds().toArray()
    return east - west >= 360 ? [-180, south, 180, north] : [wrapped(west), south, wrapped(east), north]
  }

  set(source, features) {
    this.map.getSource(source).setData({ type: 'FeatureCollection', features })
  }
}

const linesOf = (tracks, areJoined) =>
  tracks.flatMap((track) =>
    splitTrack(track, areJoined).lines.map((coordinates) => ({
      type: 'Feature',
      properties: {},
      geometry: { type: 'LineString', coordinates },
    })),
  )

const wrapped = (lng) => ((((lng + 180) % 360) + 360) % 360) - 180

const hasWebGl = () => {
  const canvas = document.createElement('canvas')
  return Boolean(canvas.getContext('webgl2') ?? canvas.getContext('webgl'))
}

/** An image of a polygon, or of a disc where there are no corners. */
const icon = (color, corners) => {
  const size = 32
  const canvas = Object.assign(document.createElement('canvas'), { width: size, height: size })
  const brush = canvas.getContext('2d')
  Object.assign(brush, { fillStyle: color, strokeStyle: '#0d1520', lineWidth: 3, lineJoin: 'round' })
  brush.beginPath()
  if (corners === undefined) brush.arc(size / 2, size / 2, 9, 0, 2 * Math.PI)
  else for (const [x, y] of corners) brush.lineTo(x, y)
  brush.closePath()
  brush.stroke()
  brush.fill()
  return brush.getImageData(0, 0, size, size)
}
