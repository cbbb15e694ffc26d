// MapLibre as the page uses it: its workers are files of the service.
import type { Map as MapLibreMap, MapOptions } from 'maplibre-gl'
import maplibregl from 'maplibre-gl/dist/maplibre-gl-csp.js'
import 'maplibre-gl/dist/maplibre-gl.css'

export const newMap = (options: MapOptions): MapLibreMap => {
  maplibregl.setWorkerUrl(MAP_WORKER)
  // Joins Arabic letters and lays out right-to-left text; loaded with the first name that needs it.
  if (maplibregl.getRTLTextPluginStatus() === 'unavailable') void maplibregl.setRTLTextPlugin(RTL_TEXT, true)
  return new maplibregl.Map(options)
}

export default maplibregl
