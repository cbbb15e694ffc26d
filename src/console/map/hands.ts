// Whether somebody moves the map by hand just now: a move by script would end it.

/** As long as the last zoom or turn of a hand takes. */
const REST_MS = 400

export class Hands {
  #until = 0
  #closed = new AbortController()

  constructor(container: HTMLElement) {
    const { signal } = this.#closed
    const rest = (): void => {
      this.#until = performance.now() + REST_MS
    }
    const letGo = (): void => {
      if (this.#until === Number.POSITIVE_INFINITY) rest()
    }
    container.addEventListener('pointerdown', () => void (this.#until = Number.POSITIVE_INFINITY), { signal })
    for (const type of ['wheel', 'keydown']) container.addEventListener(type, rest, { signal, passive: true })
    for (const type of ['pointerup', 'pointercancel']) addEventListener(type, letGo, { signal })
  }

  get areOn(): boolean {
    return performance.now() < this.#until
  }

  close(): void {
    this.#closed.abort()
  }
}
