// Layers of the map, light and dark.
import type { LayerSpecification, StyleSpecification } from 'maplibre-gl'
import type { Ground } from './ground.ts'
import type { Palette } from './palette.ts'

const EMPTY = { type: 'FeatureCollection' as const, features: [] }
export const SOURCES = ['fences', 'fence-labels', 'trail', 'draft', 'handles', 'clusters', 'names'] as const
export type SourceName = (typeof SOURCES)[number]

const ROUND = { 'line-join': 'round', 'line-cap': 'round' } as const
const AREAS = ['!=', ['geometry-type'], 'LineString'] as never
const CORRIDORS = ['==', ['geometry-type'], 'LineString'] as never
/** Width in pixels that doubles with each zoom, from the width at zoom 0. */
const GROUND_WIDTH = [
  'interpolate',
  ['exponential', 2],
  ['zoom'],
  0,
  ['get', 'pixels'],
  24,
  ['*', ['get', 'pixels'], 2 ** 24],
] as never

const fenceLayers = (source: 'fences' | 'draft', color: string): LayerSpecification[] => [
  { id: `${source}-areas`, source, type: 'fill', filter: AREAS, paint: { 'fill-color': color, 'fill-opacity': 0.13 } },
  {
    id: `${source}-edges`,
    source,
    type: 'line',
    filter: AREAS,
    layout: ROUND,
    paint: { 'line-color': color, 'line-width': 1.4, 'line-opacity': 0.85 },
  },
  {
    id: `${source}-corridors`,
    source,
    type: 'line',
    filter: CORRIDORS,
    layout: ROUND,
    paint: { 'line-color': color, 'line-width': GROUND_WIDTH, 'line-opacity': 0.22 },
  },
  {
    id: `${source}-axes`,
    source,
    type: 'line',
    filter: CORRIDORS,
    paint: { 'line-color': color, 'line-width': 1.2, 'line-dasharray': [4, 4] },
  },
]

const text = (id: string, source: string, size: number, palette: Palette, offset: [number, number], font: string[]) =>
  ({
    id,
    source,
    type: 'symbol',
    layout: {
      'text-field': ['get', 'name'],
      'text-font': font,
      'text-size': size,
      'text-anchor': offset[1] === 0 ? 'center' : 'top',
      'text-offset': offset,
      'text-optional': true,
    },
    paint: { 'text-color': palette.text, 'text-halo-color': palette.halo, 'text-halo-width': 1.6 },
  }) as LayerSpecification

const TRACES_FROM_ZOOM = 4
const TRACES_TO_ZOOM = 14

/** Past routes of the fleet: the streets of a map without others. */
const traces = (palette: Palette): LayerSpecification => ({
  id: 'traces',
  source: 'traces',
  'source-layer': 'traces',
  type: 'circle',
  minzoom: TRACES_FROM_ZOOM,
  paint: {
    'circle-color': palette.road,
    'circle-opacity': ['interpolate', ['linear'], ['get', 'count'], 1, 0.45, 16, 0.95],
    // Width of a cell, whose size on the screen stays the same at each zoom until the finest cells.
    'circle-radius': ['interpolate', ['exponential', 2], ['zoom'], 12, 1.4, 14, 4, 15.5, 8],
  },
})

/** Layers from the bottom up; trackers come below `clusters`. */
export const layersOf = (palette: Palette, ground: Ground): LayerSpecification[] => [
  ...ground.layers(palette),
  traces(palette),
  ...ground.labels(palette),
  ...fenceLayers('fences', palette.fence),
  {
    id: 'trail',
    source: 'trail',
    type: 'line',
    layout: ROUND,
    paint: { 'line-color': ['coalesce', ['get', 'color'], palette.trail], 'line-width': 3.2 },
  },
  text('fence-labels', 'fence-labels', 12, { ...palette, text: palette.fence }, [0, 0], ground.font),
  ...fenceLayers('draft', palette.draft),
  {
    id: 'handles',
    source: 'handles',
    type: 'circle',
    paint: {
      'circle-radius': ['case', ['==', ['get', 'kind'], 'middle'], 5, 8],
      'circle-color': palette.halo,
      'circle-stroke-color': palette.draft,
      'circle-stroke-width': 2.5,
    },
  },
  {
    id: 'clusters',
    source: 'clusters',
    type: 'circle',
    paint: {
      'circle-color': palette.text,
      'circle-opacity': 0.86,
      'circle-radius': ['interpolate', ['linear'], ['get', 'count'], 2, 13, 50, 20, 1000, 30],
      'circle-stroke-width': 2,
      'circle-stroke-color': palette.halo,
    },
  },
  text('cluster-counts', 'clusters', 13, { ...palette, text: palette.halo, halo: palette.text }, [0, 0], ground.font),
  text('names', 'names', 11.5, palette, [0, 1.1], ground.font),
]

export const TRACES_PATH = '/api/v3/tiles/traces/'

export const styleOf = (palette: Palette, ground: Ground): StyleSpecification => ({
  version: 8,
  // Colours change at once: a printed map is drawn once.
  transition: { duration: 0, delay: 0 },
  ...ground.rest,
  sources: {
    ...ground.sources,
    traces: {
      type: 'vector',
      tiles: [`${location.origin}${TRACES_PATH}{z}/{x}/{y}`],
      minzoom: TRACES_FROM_ZOOM,
      maxzoom: TRACES_TO_ZOOM,
    },
    ...Object.fromEntries(SOURCES.map((name) => [name, { type: 'geojson' as const, data: EMPTY }])),
  },
  layers: layersOf(palette, ground),
})
