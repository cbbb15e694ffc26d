// The one map of the page, shared by what stands beside it.
import type { MapView } from './map-view.ts'

class Stage {
  view = $state.raw<MapView>()
  /** No WebGL: positions are shown as a table. */
  hasNoMap = $state(false)
  /** There was a map, and the browser has lost it; it may come back. */
  isLost = $state(false)
  /** The tracker that the map keeps in its middle, now or in playback; a reader who drags the map lets go of it. */
  followedId = $state<string>()

  toggleFollow(trackerId: string): void {
    this.followedId = this.followedId === trackerId ? undefined : trackerId
  }

  lose(): void {
    this.view = undefined
    this.hasNoMap = true
    this.isLost = true
  }

  restore(view: MapView): void {
    this.hasNoMap = false
    this.isLost = false
    this.view = view
  }

  close(): void {
    this.view?.close()
    this.view = undefined
  }
}

export const stage = new Stage()
