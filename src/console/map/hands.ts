// Whether the user is moving the map by hand: a move by script would end it.

/** Duration of the last zoom or turn after a gesture. */
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
