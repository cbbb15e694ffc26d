// The shipped base map. Its tiles hold land, water, borders, countries and cities.
import type { LayerSpecification, SourceSpecification, StyleSpecification } from 'maplibre-gl'
import type { Palette } from './palette.ts'

/** Highest zoom of the tiles; beyond it, the map enlarges them. */
const ZOOM_MAX = 6
const FONT = ['system-ui', 'sans-serif']

/** Base map below the reader's own layers. */
export interface Ground {
  sources: StyleSpecification['sources']
  layers(palette: Palette): LayerSpecification[]
  /** Labels of the base map, above the traces. */
  labels(palette: Palette): LayerSpecification[]
  /** Fonts of labels; they come from the reader's machine unless a style names where to load them from. */
  font: string[]
  /** Fonts and images of a style. */
  rest?: Pick<StyleSpecification, 'glyphs' | 'sprite'>
}

const baseSource = (): SourceSpecification => ({
  type: 'vector',
  tiles: [`${location.origin}/api/v3/tiles/base/{z}/{x}/{y}`],
  maxzoom: ZOOM_MAX,
  attribution: 'Natural Earth · GeoNames, CC BY 4.0',
})

export const label = (
  id: string,
  layer: string,
  palette: Palette,
  more: { filter?: unknown; minzoom?: number; maxzoom?: number; size: unknown; bold?: boolean; isAlong?: boolean },
  source = 'base',
): LayerSpecification =>
  ({
    id,
    source,
    'source-layer': layer,
    type: 'symbol',
    ...(more.filter !== undefined && { filter: more.filter }),
    ...(more.minzoom !== undefined && { minzoom: more.minzoom }),
    ...(more.maxzoom !== undefined && { maxzoom: more.maxzoom }),
    layout: {
      'text-field': ['get', 'name'],
      'text-font': FONT,
      'text-size': more.size,
      'text-max-width': 8,
      ...(more.isAlong && { 'symbol-placement': 'line' }),
      ...(layer === 'cities' && { 'symbol-sort-key': ['-', ['get', 'population']] }),
      ...(layer === 'countries' && { 'text-transform': 'uppercase', 'text-letter-spacing': 0.12 }),
    },
    paint: {
      'text-color': more.bold ? palette.text : palette.faint,
      'text-halo-color': palette.ground,
      'text-halo-width': 1.4,
    },
  }) as LayerSpecification

const baseLayers = (palette: Palette): LayerSpecification[] => [
  { id: 'water', type: 'background', paint: { 'background-color': palette.water } },
  { id: 'land', source: 'base', 'source-layer': 'land', type: 'fill', paint: { 'fill-color': palette.ground } },
  { id: 'lakes', source: 'base', 'source-layer': 'lakes', type: 'fill', paint: { 'fill-color': palette.water } },
  {
    id: 'rivers',
    source: 'base',
    'source-layer': 'rivers',
    type: 'line',
    paint: { 'line-color': palette.water, 'line-width': ['interpolate', ['linear'], ['zoom'], 3, 0.6, 12, 3] },
  },
  {
    id: 'borders',
    source: 'base',
    'source-layer': 'borders',
    type: 'line',
    paint: { 'line-color': palette.border, 'line-width': 1, 'line-dasharray': [4, 2] },
  },
]

const baseLabels = (palette: Palette): LayerSpecification[] => [
  label('countries', 'countries', palette, { maxzoom: 7, size: 11 }),
  label('cities', 'cities', palette, {
    size: ['interpolate', ['linear'], ['get', 'population'], 20_000, 11, 3_000_000, 15],
    bold: true,
  }),
]

/** The shipped map. */
export const baseGround: Ground = {
  sources: { base: baseSource() },
  layers: baseLayers,
  labels: baseLabels,
  font: FONT,
}
