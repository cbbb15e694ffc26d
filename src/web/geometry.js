// What the page computes about places. Positions are [longitude, latitude] in degrees, lengths are metres.

const EARTH_RADIUS_METERS = 6_371_008.8
const RADIANS = Math.PI / 180

/** Longer than this without a point, and nobody knows how the tracker went. */
const GAP_MS = 5 * 60_000
/** A step that is both this long and this fast is no journey: a demo that begins again, two devices under one id. */
const JUMP_METERS = 500
const JUMP_METERS_PER_SECOND = 85

/** On the sphere. */
export const distance = ([lng1, lat1], [lng2, lat2]) => {
  const sinLat = Math.sin(((lat2 - lat1) / 2) * RADIANS)
  const sinLng = Math.sin(((lng2 - lng1) / 2) * RADIANS)
  const h = sinLat ** 2 + Math.cos(lat1 * RADIANS) * Math.cos(lat2 * RADIANS) * sinLng ** 2
  return 2 * EARTH_RADIUS_METERS * Math.asin(Math.min(1, Math.sqrt(h)))
}

/** From one position to another, in degrees clockwise from north. */
export const bearing = ([lng1, lat1], [lng2, lat2]) => {
  const dLng = (lng2 - lng1) * RADIANS
  const y = Math.sin(dLng) * Math.cos(lat2 * RADIANS)
  const x =
    Math.cos(lat1 * RADIANS) * Math.sin(lat2 * RADIANS) -
    Math.sin(lat1 * RADIANS) * Math.cos(lat2 * RADIANS) * Math.cos(dLng)
  return (Math.atan2(y, x) / RADIANS + 360) % 360
}

/** Whether a tracker can have gone from one point to the next: `{at, position}`, `at` in ms. */
export const isReachable = (from, to) => {
  const meters = distance(from.position, to.position)
  return meters < JUMP_METERS || meters / ((to.at - from.at) / 1000) < JUMP_METERS_PER_SECOND
}

/** Whether two points, with none between them, can be joined by a line. */
export const isStep = (from, to) => to.at - from.at <= GAP_MS && isReachable(from, to)

/**
 * Cuts points in order of time where two cannot be joined; where points were left out, by `isReachable`.
 * Answers the lines of at least two positions, and how many metres they have together.
 */
export const splitTrack = (points, areJoined = isStep) => {
  const lines = []
  let meters = 0
  let before
  for (const point of points) {
    if (before === undefined || !areJoined(before, point)) lines.push([])
    else meters += distance(before.position, point.position)
    lines.at(-1).push(point.position)
    before = point
  }
  return { lines: lines.filter((line) => line.length > 1).map(unwrapped), meters }
}

/** Longitudes that go on beyond 180 instead of jumping to the other end of the map. */
const unwrapped = (positions) => {
  let turns = 0
  return positions.map(([lng, lat], index) => {
    const step = index === 0 ? 0 : lng - positions[index - 1][0]
    if (step > 180) turns--
    if (step < -180) turns++
    return [lng + turns * 360, lat]
  })
}

/** A ring of 64 corners at `radius` around a centre, on the sphere. */
const circleRing = ({ lat, lng }, radius) => {
  const angle = radius / EARTH_RADIUS_METERS
  const ring = Array.from({ length: 65 }, (_, i) => {
    const turn = ((i % 64) / 64) * 2 * Math.PI
    const sinLat =
      Math.sin(lat * RADIANS) * Math.cos(angle) + Math.cos(lat * RADIANS) * Math.sin(angle) * Math.cos(turn)
    const y = Math.sin(turn) * Math.sin(angle) * Math.cos(lat * RADIANS)
    const x = Math.cos(angle) - Math.sin(lat * RADIANS) * sinLat
    return [lng + Math.atan2(y, x) / RADIANS, Math.asin(sinLat) / RADIANS]
  })
  return ring
}

/** Metres that a pixel of the map is wide at zoom 0 on the equator. */
const METERS_PER_PIXEL = (2 * Math.PI * EARTH_RADIUS_METERS) / 512

/** How many pixels `meters` are at zoom 0 at this latitude; each zoom doubles it. */
const pixelsAtZoom0 = (meters, lat) => meters / (METERS_PER_PIXEL * Math.cos(lat * RADIANS))

/** The geofence as GeoJSON that a map can draw: circles become polygons, corridors stay lines and say how wide they are. */
export const fenceFeature = ({ name, geometry, center, radius, width }) => {
  if (center !== undefined) {
    const ring = circleRing(center, radius)
    return feature(name, { type: 'Polygon', coordinates: [ring] }, [center.lng, center.lat])
  }
  if (geometry.type === 'LineString') {
    const coordinates = unwrapped(geometry.coordinates)
    const middle = coordinates[Math.floor(coordinates.length / 2)]
    const shown = feature(name, { type: 'LineString', coordinates }, middle)
    shown.properties.pixels = pixelsAtZoom0(width, middle[1])
    return shown
  }
  const polygons = geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates
  const coordinates = polygons.map((rings) => rings.map(unwrapped))
  return feature(name, { type: 'MultiPolygon', coordinates }, middleOf(coordinates[0][0]))
}

const feature = (name, geometry, labelAt) => ({ type: 'Feature', properties: { name }, geometry, labelAt })

const middleOf = (ring) => [0, 1].map((axis) => ring.reduce((sum, corner) => sum + corner[axis], 0) / ring.length)
