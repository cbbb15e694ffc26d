import maplibregl from 'maplibre-gl/dist/maplibre-gl-csp.js'
import { baseGround, type Ground } from './ground.ts'
import { ownStyleGround } from './own-style.ts'

/** The operator's style or streets, else the shipped map. */
export const groundOf = async (settings: { hasStreets?: boolean; mapStyleUrl?: string }): Promise<Ground> => {
  const { hasStreets, mapStyleUrl } = settings
  if (mapStyleUrl !== undefined) return (await ownStyleGround(mapStyleUrl)) ?? baseGround
  if (hasStreets !== true) return baseGround
  const { streetsGround } = await import('./streets.ts')
  return (await streetsGround(maplibregl.addProtocol)) ?? baseGround
}
