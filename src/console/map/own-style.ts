// The operator's own style, which replaces the shipped map.
import type { LayerSpecification, StyleSpecification } from 'maplibre-gl'
import { baseGround, type Ground } from './ground.ts'

const PREFIX = 'style-'

/** Undefined if the style cannot be loaded: the shipped map stays. */
export const ownStyleGround = async (url: string): Promise<Ground | undefined> => {
  try {
    const answer = await fetch(url, { credentials: 'omit', referrerPolicy: 'no-referrer' })
    if (!answer.ok) return undefined
    return groundOf((await answer.json()) as StyleSpecification, url)
  } catch {
    return undefined
  }
}

const groundOf = (style: StyleSpecification, url: string): Ground => {
  const { sources, layers, glyphs, sprite } = style
  const renamed = Object.entries(sources).map(([name, source]) => [PREFIX + name, absolute(source, url)])
  const own = layers.map((layer) => ({
    ...layer,
    id: PREFIX + layer.id,
    ...('source' in layer && { source: PREFIX + layer.source }),
  })) as LayerSpecification[]
  const isName = ({ type }: LayerSpecification): boolean => type === 'symbol'
  return {
    sources: Object.fromEntries(renamed),
    layers: () => own.filter((layer) => !isName(layer)),
    labels: () => own.filter(isName),
    font: glyphs === undefined ? baseGround.font : (fontOf(own) ?? baseGround.font),
    rest: {
      ...(glyphs !== undefined && { glyphs: withBraces(glyphs, url) }),
      ...(typeof sprite === 'string' && { sprite: new URL(sprite, url).href }),
    },
  }
}

/** Addresses in a style may be relative to its own. */
const absolute = <Source extends object>(source: Source, url: string): Source => {
  const { url: at, tiles } = source as { url?: string; tiles?: string[] }
  return {
    ...source,
    ...(at !== undefined && { url: new URL(at, url).href }),
    ...(tiles !== undefined && { tiles: tiles.map((tile) => withBraces(tile, url)) }),
  }
}

const withBraces = (template: string, url: string): string =>
  new URL(template, url).href.replaceAll('%7B', '{').replaceAll('%7D', '}')

/** A font that its server has: one used by a layer. */
const fontOf = (layers: readonly LayerSpecification[]): string[] | undefined => {
  for (const layer of layers) {
    const font = layer.type === 'symbol' ? layer.layout?.['text-font'] : undefined
    if (Array.isArray(font) && font.every((name) => typeof name === 'string')) return font as string[]
  }
  return undefined
}
