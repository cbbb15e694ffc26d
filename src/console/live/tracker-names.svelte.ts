// Names of trackers that events name and of which no position has come.
import { get, type Json, orNothing } from '../api/client.ts'
import { session } from '../app/session.svelte.ts'
import { t } from '../i18n/i18n.svelte.ts'

const NAMES_MAX = 500
const ASKED_AT_ONCE = 100

export class TrackerNames {
  #names = $state.raw<ReadonlyMap<string, string>>(new Map())
  readonly #asked = new Set<string>()

  /** The end of the id tells those apart that are gone, or that the role does not show. */
  of(trackerId: string): string {
    return this.#names.get(trackerId) ?? `${t('tracker')} …${trackerId.slice(-4)}`
  }

  /** Asks for those that were not asked for before, some of them at a time. */
  async seek(trackerIds: readonly string[]): Promise<void> {
    const fresh = [...new Set(trackerIds)].filter((id) => !this.#asked.has(id)).slice(0, ASKED_AT_ONCE)
    if (fresh.length === 0 || !session.may('view/tracker')) return
    if (this.#asked.size >= NAMES_MAX) this.#asked.clear()
    for (const id of fresh) this.#asked.add(id)
    const { data } = await orNothing(get(`/trackers?_id=${fresh.join()}&fields=name&limit=${ASKED_AT_ONCE}`), {
      data: [],
    })
    const found = data.map(({ _id, name }: Json): [string, string] => [_id, name])
    this.#names = new Map([...this.#names, ...found].slice(-NAMES_MAX))
  }
}
