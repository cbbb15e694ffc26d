// The user's choices in this browser. Without storage they last for this visit.
import type { Theme } from '../map/palette.ts'

const KEY = 'waymark-console'

interface Stored {
  theme?: Theme
  language?: string
  isClustering?: boolean
  /** The first steps are hidden. */
  isStartHidden?: boolean
}

const read = (): Stored => {
  try {
    return JSON.parse(localStorage.getItem(KEY) ?? '{}')
  } catch {
    return {}
  }
}

class Preferences {
  stored = $state<Stored>(read())
  #system = $state<Theme>(matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')

  constructor() {
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', ({ matches }) => {
      this.#system = matches ? 'dark' : 'light'
    })
  }

  get theme(): Theme {
    return this.stored.theme ?? this.#system
  }

  set(changes: Stored): void {
    this.stored = { ...this.stored, ...changes }
    try {
      localStorage.setItem(KEY, JSON.stringify(this.stored))
    } catch (error) {
      if (!(error instanceof DOMException)) throw error
    }
  }
}

export const preferences = new Preferences()
