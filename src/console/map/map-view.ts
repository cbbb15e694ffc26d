// The map: base map, geofences, trackers, a trail, and the current drawing.
import type { Feature, Point } from 'geojson'
import type { GeoJSONSource, Map as MapLibreMap, MapMouseEvent, MapTouchEvent } from 'maplibre-gl'
import type { Fleet } from '../live/fleet.ts'
import { type Cluster, clusterFeature, clustered } from './clusters.ts'
import { type Fence, fenceFeature } from './fence-features.ts'
import type { Position } from './geometry.ts'
import { PALETTES, type Theme } from './palette.ts'
import type { Ground } from './ground.ts'
import { Hands } from './hands.ts'
import maplibregl, { newMap } from './maplibre.ts'
import { ShownData } from './shown-data.ts'
import { layersOf, type SourceName, styleOf, TRACES_PATH } from './style.ts'
import { TrackerLayer } from './tracker-layer.ts'

const OWN_TRACES = `${location.origin}${TRACES_PATH}`
const CLUSTER_FROM = 300
const NAMES_MAX = 300
const NAMES_FROM_ZOOM = 11.5
const PICK_PIXELS = 18
/** Distance at which a pointer grabs a handle. */
const MOUSE_PIXELS = 10
const FINGER_PIXELS = 22
const REPAINT_MS = 1000

export interface MapHandlers {
  /** Trackers at the place of a click: one, several on one spot, or none. */
  onPick(trackerIds: string[]): void
  /** The reader has moved the map: following a tracker ends. */
  onDragged(): void
  /** The browser has lost the canvas: nothing of the view may be used until it is restored. */
  onLost(): void
  onRestored(): void
  /** Headers of requests for the caller's own data. */
  authorization(): { [name: string]: string }
}

export interface Pointing {
  position: Position
  /** Properties of the handle or other feature below the pointer. */
  handle: { [property: string]: unknown } | undefined
  type: 'down' | 'move' | 'up' | 'click'
}

export class MapView {
  map: MapLibreMap
  trackers: TrackerLayer
  isClustering = true
  /** While drawing, clicks add corners and do not select trackers. */
  onPointing: ((pointing: Pointing) => boolean) | undefined
  #handlers: MapHandlers
  #fleet: Fleet | undefined
  #visible: readonly number[] = []
  #selected: number | undefined
  #clusters: Cluster[] = []
  #shown: readonly number[] = []
  #namesAt = 0
  #namesDue: number | undefined
  #isLost = false
  #data = new ShownData()
  #ground: Ground
  #hands: Hands

  constructor(container: HTMLElement, theme: Theme, ground: Ground, handlers: MapHandlers) {
    const isStill = matchMedia('(prefers-reduced-motion: reduce)').matches
    this.#handlers = handlers
    this.#ground = ground
    this.#hands = new Hands(container)
    this.trackers = new TrackerLayer(PALETTES[theme].trackers, isStill)
    this.map = newMap({
      container,
      center: [15, 50],
      zoom: 3.5,
      attributionControl: false,
      style: styleOf(PALETTES[theme], ground),
      transformRequest: (url) => ({ url, headers: url.startsWith(OWN_TRACES) ? handlers.authorization() : undefined }),
      fadeDuration: isStill ? 0 : 150,
    })
    // Tiles that fail to load are requested again as the map moves; the page reports lost connections.
    this.map.on('error', () => undefined)
    this.map.addControl(new maplibregl.NavigationControl({ visualizePitch: false }), 'bottom-right')
    this.map.addControl(new maplibregl.ScaleControl(), 'bottom-left')
    this.map.addControl(new maplibregl.AttributionControl({ compact: true }), 'bottom-left')
  }

  async ready(): Promise<void> {
    if (!this.map.isStyleLoaded()) await new Promise<void>((loaded) => void this.map.once('load', () => loaded()))
    this.map.addLayer(this.trackers, 'clusters')
    this.#watchLoss()
    this.map.on('click', (event) => this.#click(event))
    this.map.on('zoomend', () => this.#redraw())
    this.map.on('moveend', () => this.#redraw())
    this.map.on('dragstart', () => this.#handlers.onDragged())
    this.map.on('mousemove', (event) => this.#point('move', event))
    for (const type of ['mousedown', 'touchstart'] as const) this.map.on(type, (event) => this.#point('down', event))
    for (const type of ['mouseup', 'touchend'] as const) this.map.on(type, (event) => this.#point('up', event))
    this.map.on('touchmove', (event) => this.#point('move', event))
  }

  /** After a loss the map restores its style, but no custom layer. */
  #watchLoss(): void {
    this.map.on('webglcontextlost', () => {
      this.#isLost = true
      this.#handlers.onLost()
    })
    this.map.on('webglcontextrestored', () =>
      this.map.once('style.load', () => {
        this.map.addLayer(this.trackers, 'clusters')
        this.#isLost = false
        this.#handlers.onRestored()
      }),
    )
  }

  setTheme(theme: Theme): void {
    const palette = PALETTES[theme]
    for (const { id, paint } of layersOf(palette, this.#ground))
      for (const [name, value] of Object.entries(paint ?? {}))
        this.map.setPaintProperty(id, name as never, value as never)
    this.trackers.colors = palette.trackers
  }

  drawFleet(fleet: Fleet, slots: readonly number[], selected: number | undefined): void {
    this.#fleet = fleet
    this.#visible = slots
    this.#selected = selected
    this.#redraw()
  }

  drawFences(fences: readonly Fence[]): void {
    const drawn = fences
      .filter(({ isActive }) => isActive)
      .map((fence) => fenceFeature(fence, fence._id, fence.name))
      .filter((one) => one !== undefined)
    const [shapes, labels] = [drawn.map(({ feature }) => feature), drawn.map(({ label }) => label)]
    this.set('fences', shapes)
    this.set('fence-labels', labels)
  }

  /** Lines, each in its own colour or in that of a trail. */
  drawTrail(lines: readonly { coordinates: Position[]; color?: string }[]): void {
    this.set(
      'trail',
      lines.map(({ coordinates, color }) => ({
        type: 'Feature',
        properties: color === undefined ? {} : { color },
        geometry: { type: 'LineString', coordinates },
      })),
    )
  }

  set(source: SourceName, features: Feature[]): void {
    const shown = this.map.getSource<GeoJSONSource>(source)
    if (shown !== undefined) this.#data.set(shown, features)
  }

  fit(positions: readonly Position[], maxZoom = 14): void {
    if (positions.length === 0) return
    const bounds = new maplibregl.LngLatBounds()
    for (const position of positions) bounds.extend(position)
    const { clientWidth, clientHeight } = this.map.getContainer()
    const padding = Math.min(60, clientWidth / 4, clientHeight / 4) // above a large sheet the map is a strip
    this.map.fitBounds(bounds, { padding, maxZoom, animate: false })
  }

  flyTo(center: Position, zoom = 14): void {
    this.map.easeTo({ center, zoom: Math.max(zoom, this.map.getZoom()), duration: 600 })
  }

  follow(center: Position, durationMs = REPAINT_MS): void {
    if (this.#hands.areOn) return
    this.map.easeTo({ center, duration: durationMs, easing: (part) => part })
  }

  /** Positions on the map, by tracker, as parts of the square world; tests compare them with the service's. */
  places(): { [trackerId: string]: [x: number, y: number] } {
    const places = this.trackers.places()
    return Object.fromEntries(this.#shown.map((slot, i) => [this.#fleet!.ids[slot]!, places[i]!]))
  }

  /** Copies the drawn map: browsers print its own canvas empty. */
  copyTo(canvas: HTMLCanvasElement): void {
    const drawn = this.map.getCanvas()
    this.map.redraw()
    canvas.width = drawn.width
    canvas.height = drawn.height
    canvas.getContext('2d')!.drawImage(drawn, 0, 0)
  }

  close(): void {
    clearTimeout(this.#namesDue)
    this.#hands.close()
    this.map.remove()
  }

  #redraw(): void {
    const fleet = this.#fleet
    if (fleet === undefined || this.#isLost) return
    const inSight = this.#inSight(fleet)
    let shown = this.#visible
    this.#clusters = []
    if (this.isClustering && inSight.length > CLUSTER_FROM) {
      const { clusters, singles } = clustered(fleet, inSight, this.map.getZoom())
      this.#clusters = clusters
      const selected = this.#selected
      shown = selected === undefined || singles.includes(selected) ? singles : [...singles, selected]
    }
    this.set('clusters', this.#clusters.map(clusterFeature))
    this.#shown = this.#last(shown)
    this.trackers.show(fleet, this.#shown, this.#selected, performance.now())
    this.#name(fleet, shown)
  }

  /** The selected tracker is drawn above the others. */
  #last(slots: readonly number[]): readonly number[] {
    const selected = this.#selected
    if (selected === undefined || !slots.includes(selected)) return slots
    return [...slots.filter((slot) => slot !== selected), selected]
  }

  #name(fleet: Fleet, shown: readonly number[]): void {
    const now = performance.now()
    if (now - this.#namesAt < REPAINT_MS / 2) {
      // Trackers shown last may stay: their names are drawn after them.
      this.#namesDue ??= setTimeout(() => this.#redraw(), REPAINT_MS / 2) as unknown as number
      return
    }
    clearTimeout(this.#namesDue)
    this.#namesDue = undefined
    this.#namesAt = now
    const isNear = this.map.getZoom() >= NAMES_FROM_ZOOM
    const named = isNear ? this.#inSight(fleet, shown).slice(0, NAMES_MAX) : []
    if (this.#selected !== undefined && !named.includes(this.#selected)) named.push(this.#selected)
    this.set(
      'names',
      named.map((slot) => ({
        type: 'Feature',
        properties: { name: fleet.names[slot] },
        geometry: { type: 'Point', coordinates: [fleet.lng[slot]!, fleet.lat[slot]!] },
      })),
    )
  }

  #inSight(fleet: Fleet, slots = this.#visible): number[] {
    const bounds = this.map.getBounds()
    const [west, east, south, north] = [bounds.getWest(), bounds.getEast(), bounds.getSouth(), bounds.getNorth()]
    return slots.filter((slot) => {
      const [lng, lat] = [fleet.lng[slot]!, fleet.lat[slot]!]
      if (lat < south || lat > north) return false
      const turned = lng + Math.ceil((west - lng) / 360) * 360
      return turned <= east
    })
  }

  #click(event: MapMouseEvent): void {
    if (this.#point('click', event)) return
    const [cluster] = this.map.queryRenderedFeatures(event.point, { layers: ['clusters'] })
    const fleet = this.#fleet
    if (fleet === undefined) return
    if (cluster !== undefined) {
      const slots = this.#clusters[cluster.properties.index as number]?.slots ?? []
      return this.#handlers.onPick(slots.map((slot) => fleet.ids[slot]!))
    }
    const hit = this.#inSight(fleet).filter((slot) => {
      const at = this.map.project([fleet.lng[slot]!, fleet.lat[slot]!])
      return Math.hypot(at.x - event.point.x, at.y - event.point.y) <= PICK_PIXELS
    })
    this.#handlers.onPick(hit.map((slot) => fleet.ids[slot]!))
  }

  #point(type: Pointing['type'], event: MapMouseEvent | MapTouchEvent): boolean {
    if (this.onPointing === undefined) return false
    const { lng, lat } = event.lngLat.wrap()
    const isTaken = this.onPointing({ type, position: [lng, lat], handle: this.#handleAt(event.point) })
    if (isTaken && type === 'down') event.preventDefault()
    // Browsers would take it for a swipe, whose end swallows a tap that follows at once.
    if (isTaken && type === 'move' && event.originalEvent.cancelable) event.originalEvent.preventDefault()
    return isTaken
  }

  /** The nearest one within reach. */
  #handleAt({ x, y }: { x: number; y: number }): Pointing['handle'] {
    const reach = matchMedia('(any-pointer: coarse)').matches ? FINGER_PIXELS : MOUSE_PIXELS
    const found = this.map.queryRenderedFeatures(
      [
        [x - reach, y - reach],
        [x + reach, y + reach],
      ],
      { layers: ['handles'] },
    )
    const away = ({ geometry }: Feature): number => {
      const at = this.map.project((geometry as Point).coordinates as Position)
      return Math.hypot(at.x - x, at.y - y)
    }
    return found.sort((a, b) => away(a) - away(b))[0]?.properties
  }
}

export const hasWebGl = (): boolean => document.createElement('canvas').getContext('webgl2') !== null
