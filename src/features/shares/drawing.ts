import type { Followed } from './follow.ts'

const WIDTH = 320
const HEIGHT = 180
const MARGIN = 16
/** Smallest span, in degrees, that fills the drawing. */
const SPAN_MIN = 0.002

type LngLat = readonly [lng: number, lat: number]

/** Trail, position and goal to scale, north up, without a base map; empty if there is nothing to draw. */
export const drawing = ({ task, position, trail = [] }: Followed, label: string): string => {
  if (position === undefined) return ''
  const here: LngLat = [position.lng, position.lat]
  const goal: LngLat | undefined = task?.lat === undefined || task.lng === undefined ? undefined : [task.lng, task.lat]
  const put = projection([...trail, here, ...(goal === undefined ? [] : [goal])])
  const [x, y] = put(here)
  const line =
    trail.length < 2 ? '' : `<polyline class="trail" points="${trail.map((one) => put(one).join(',')).join(' ')}"/>`
  const parts = [line]
  if (goal !== undefined) {
    const [goalX, goalY] = put(goal)
    parts.push(`<line class="way" x1="${x}" y1="${y}" x2="${goalX}" y2="${goalY}"/>`)
    parts.push(`<rect class="goal" x="${goalX - 5}" y="${goalY - 5}" width="10" height="10"/>`)
  }
  parts.push(`<circle class="here" cx="${x}" cy="${y}" r="6"/>`)
  return `<svg viewBox="0 0 ${WIDTH} ${HEIGHT}" role="img" aria-label="${label}">${parts.join('')}</svg>`
}

/** Projects places into the picture; longitudes count the short way round from the first. */
const projection = (places: readonly LngLat[]): ((place: LngLat) => [number, number]) => {
  const [[origin]] = places
  const near = (lng: number): number => origin + ((((lng - origin + 180) % 360) + 360) % 360) - 180
  const lngs = places.map(([lng]) => near(lng))
  const lats = places.map(([, lat]) => lat)
  const [west, east] = [Math.min(...lngs), Math.max(...lngs)]
  const [south, north] = [Math.min(...lats), Math.max(...lats)]
  const squeeze = Math.max(0.01, Math.cos((((south + north) / 2) * Math.PI) / 180))
  const scale = Math.min(
    (WIDTH - 2 * MARGIN) / Math.max((east - west) * squeeze, SPAN_MIN),
    (HEIGHT - 2 * MARGIN) / Math.max(north - south, SPAN_MIN),
  )
  const round = (value: number): number => Math.round(value * 10) / 10
  return ([lng, lat]) => [
    round(WIDTH / 2 + (near(lng) - (west + east) / 2) * squeeze * scale),
    round(HEIGHT / 2 - (lat - (south + north) / 2) * scale),
  ]
}
