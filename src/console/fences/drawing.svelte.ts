// The geofence being drawn or changed: it is kept when its page is left.
import type { Draft } from './draft.svelte.ts'

class Drawing {
  draft = $state.raw<Draft>()
}

export const drawing = new Drawing()
