/** Addresses of built files, inserted by the build. */
declare const LIVE_WORKER: string
declare const MAP_WORKER: string
declare const RTL_TEXT: string

declare module 'maplibre-gl/dist/maplibre-gl-csp.js' {
  import maplibregl = require('maplibre-gl')
  export default maplibregl
}
declare module '*.css'
