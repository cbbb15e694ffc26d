import type { Feature } from 'geojson'
import type { GeoJSONSource } from 'maplibre-gl'

/** Data of GeoJSON sources: setting the same again would cut it into tiles and draw the whole map. */
export class ShownData {
  /** By source, as text: a restored map has new sources. */
  #texts = new WeakMap<GeoJSONSource, string>()

  set(source: GeoJSONSource, features: Feature[]): void {
    const text = JSON.stringify(features)
    if (this.#texts.get(source) === text) return
    this.#texts.set(source, text)
    source.setData({ type: 'FeatureCollection', features })
  }
}
