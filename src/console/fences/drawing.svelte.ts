// The geofence that is being drawn or changed: it waits while its page is left, and nothing of it is lost.
import type { Draft } from './draft.svelte.ts'

class Drawing {
  draft = $state.raw<Draft>()
}

export const drawing = new Drawing()
