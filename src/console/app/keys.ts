// Keyboard shortcuts, disabled while text is typed.
import { router } from './router.svelte.ts'

type Handler = (event: KeyboardEvent) => void
const handlers = new Map<string, Handler>()
let isGoing = false

/** Registers a key's action while its view is shown; returns the function that removes it. */
export const onKey = (key: string, run: Handler): (() => void) => {
  handlers.set(key, run)
  return () => {
    if (handlers.get(key) === run) handlers.delete(key)
  }
}

const PAGES: { [key: string]: string } = { m: 'map', b: 'back', f: 'fences', a: 'account' }

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement &&
  target.closest('input:not([type=range]), textarea, select, [contenteditable]') !== null

/** Nothing behind a dialog moves. */
const isInDialog = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('dialog') !== null

/** Arrow keys there move the map. */
const isOnMap = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.closest('.maplibregl-map') !== null

export const keepKeys = (): (() => void) => {
  const hear = (event: KeyboardEvent): void => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    if (isInDialog(event.target)) return
    if (isTyping(event.target) && event.key !== 'Escape') return
    if (event.key.startsWith('Arrow') && isOnMap(event.target)) return
    if (isGoing && PAGES[event.key] !== undefined) {
      isGoing = false
      return router.go(PAGES[event.key]!)
    }
    isGoing = event.key === 'g'
    handlers.get(event.key)?.(event)
  }
  addEventListener('keydown', hear)
  return () => removeEventListener('keydown', hear)
}
