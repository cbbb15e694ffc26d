// The only map of the page, shared by its parts.
import type { MapView } from './map-view.ts'

class Stage {
  view = $state.raw<MapView>()
  /** No WebGL: positions are shown as a table. */
  hasNoMap = $state(false)
  /** The browser has lost the map; it may come back. */
  isLost = $state(false)
  /** The tracker kept in the map's centre, live or in playback; dragging the map ends it. */
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
