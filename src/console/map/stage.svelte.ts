// The one map of the page, shared by what stands beside it.
import type { MapView } from './map-view.ts'

class Stage {
  view = $state.raw<MapView>()
  /** No WebGL: positions are shown as a table. */
  hasNoMap = $state(false)
}

export const stage = new Stage()
