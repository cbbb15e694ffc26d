// Streets over the shipped map, from the service's archive. Its layers are recognised by their names in common schemas.
import type { addProtocol, LayerSpecification } from 'maplibre-gl'
import { PMTiles, Protocol, TileType } from 'pmtiles'
import { baseGround, type Ground, label } from './ground.ts'
import type { Palette } from './palette.ts'

const ARCHIVE_PATH = '/api/v3/tiles/map.pmtiles'
const SOURCE = 'streets'
const RASTER_PIXELS = 256
/** Names of layers in the schemas of Protomaps, OpenMapTiles and Shortbread. */
const WATER = ['water', 'ocean', 'water_polygons']
const ROADS = ['roads', 'transportation', 'streets']
const BUILDINGS = ['buildings', 'building']
const ROAD_NAMES = ['roads', 'transportation_name', 'street_labels']
const PLACES = ['places', 'place', 'place_labels']

const LARGE = ['motorway', 'highway', 'trunk', 'primary', 'major_road']
const KIND = ['coalesce', ['get', 'kind'], ['get', 'class'], '']
/** Places whose names the shipped map lacks. */
const SMALL_PLACES = ['town', 'village', 'hamlet', 'suburb', 'quarter', 'neighbourhood', 'locality', 'macrohood']

/** Undefined if the archive cannot be read: the shipped map stays. */
export const streetsGround = async (register: typeof addProtocol): Promise<Ground | undefined> => {
  const url = `${location.origin}${ARCHIVE_PATH}`
  try {
    const archive = new PMTiles(url)
    const [{ tileType, minZoom, maxZoom, minLon, minLat, maxLon, maxLat }, metadata] = await Promise.all([
      archive.getHeader(),
      archive.getMetadata(),
    ])
    const protocol = new Protocol()
    protocol.add(archive)
    register('pmtiles', protocol.tile)
    const { attribution = '', vector_layers = [] } = metadata as Metadata
    const names = vector_layers.map(({ id }) => id)
    const isVector = tileType === TileType.Mvt
    return {
      ...baseGround,
      sources: {
        ...baseGround.sources,
        // Without its TileJSON, whose attribution is inserted as HTML.
        [SOURCE]: {
          type: isVector ? 'vector' : 'raster',
          tiles: [`pmtiles://${url}/{z}/{x}/{y}`],
          minzoom: minZoom,
          maxzoom: maxZoom,
          bounds: [minLon, minLat, maxLon, maxLat],
          ...(!isVector && { tileSize: RASTER_PIXELS }),
          attribution: plain(attribution),
        },
      },
      layers: (palette) => [
        ...baseGround.layers(palette),
        ...(isVector ? streets(palette, names) : [{ id: 'streets', source: SOURCE, type: 'raster' } as const]),
      ],
      labels: (palette) => [...(isVector ? streetNames(palette, names) : []), ...baseGround.labels(palette)],
    }
  } catch {
    return undefined
  }
}

interface Metadata {
  attribution?: string
  vector_layers?: { id: string }[]
}

const streets = (palette: Palette, names: readonly string[]): LayerSpecification[] => {
  const below = { source: SOURCE, minzoom: 6 } as const
  const found = (known: readonly string[]): string[] => known.filter((name) => names.includes(name))
  return [
    ...found(WATER).map((layer) => ({
      ...below,
      id: `streets-${layer}`,
      'source-layer': layer,
      type: 'fill' as const,
      filter: ['==', ['geometry-type'], 'Polygon'] as never,
      paint: { 'fill-color': palette.water },
    })),
    ...found(BUILDINGS).map((layer) => ({
      ...below,
      id: `streets-${layer}`,
      'source-layer': layer,
      type: 'fill' as const,
      minzoom: 14,
      paint: { 'fill-color': palette.border, 'fill-opacity': 0.28 },
    })),
    ...found(ROADS).map((layer) => ({
      ...below,
      id: `streets-${layer}`,
      'source-layer': layer,
      type: 'line' as const,
      filter: ['==', ['geometry-type'], 'LineString'] as never,
      layout: { 'line-join': 'round' as const, 'line-cap': 'round' as const },
      paint: { 'line-color': palette.road, 'line-width': WIDTH },
    })),
  ]
}

const IS_LARGE = ['in', KIND, ['literal', LARGE]]
const WIDTH = [
  'interpolate',
  ['exponential', 1.6],
  ['zoom'],
  6,
  ['case', IS_LARGE, 0.8, 0.2],
  12,
  ['case', IS_LARGE, 2.4, 0.8],
  17,
  ['case', IS_LARGE, 14, 8],
] as never

const streetNames = (palette: Palette, names: readonly string[]): LayerSpecification[] => [
  ...ROAD_NAMES.filter((name) => names.includes(name)).map((layer) =>
    label(`${layer}-names`, layer, palette, { minzoom: 13, size: 11, isAlong: true }, SOURCE),
  ),
  ...PLACES.filter((name) => names.includes(name)).map((layer) =>
    label(
      `${layer}-names`,
      layer,
      palette,
      {
        minzoom: 9,
        size: 12,
        filter: [
          'in',
          ['coalesce', ['get', 'kind_detail'], ['get', 'kind'], ['get', 'class']],
          ['literal', SMALL_PLACES],
        ],
      },
      SOURCE,
    ),
  ),
]

/** An archive's attribution is foreign HTML that the map would insert unchanged: its text is kept without tags. */
const plain = (html: string): string => html.replace(/<[^>]*>/g, '').replace(/[<>]/g, '')
