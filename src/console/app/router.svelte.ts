// Current page: the part of the address after `#/`.

class Router {
  path = $state<string[]>(pathOf(location.hash))

  constructor() {
    addEventListener('hashchange', () => {
      this.path = pathOf(location.hash)
    })
  }

  get page(): string {
    return this.path[0] ?? 'map'
  }

  go(...path: string[]): void {
    location.hash = `#/${path.map(encodeURIComponent).join('/')}`
  }
}

const pathOf = (hash: string): string[] => {
  if (!hash.startsWith('#/')) return ['map']
  // A part that is empty keeps its place before others: a day without a tracker is no tracker.
  const parts = hash.slice(2).replace(/\/+$/, '').split('/')
  try {
    return parts[0] === '' ? ['map'] : parts.map(decodeURIComponent)
  } catch {
    return ['map']
  }
}

export const router = new Router()
