// Shared filter of list and map.
import { isInside } from '../map/fence-features.ts'
import { plainText } from '../parts/plain-text.ts'
import { live } from './live.svelte.ts'

class Filter {
  text = $state('')
  state = $state<number>()
  hubId = $state('')
  teamId = $state('')
  fenceId = $state('')
  tag = $state('')

  get isOn(): boolean {
    const { text, state, hubId, teamId, fenceId, tag } = this
    return state !== undefined || [text, hubId, teamId, fenceId, tag].some((one) => one !== '')
  }

  clear(): void {
    this.text = ''
    this.state = undefined
    this.hubId = ''
    this.teamId = ''
    this.fenceId = ''
    this.tag = ''
  }

  /** Matching slots, by name. */
  slots(): number[] {
    const { fleet } = live
    if (!this.isOn) return [...fleet.sorted()]
    // Read once: a signal costs more than a comparison, and a fleet is large.
    const { state, hubId, teamId, tag } = this
    const wanted = plainText(this.text.trim())
    const fence = this.fenceId === '' ? undefined : live.fenceOf(this.fenceId)
    return fleet.sorted().filter((slot) => {
      if (state !== undefined && fleet.state[slot] !== state) return false
      if (wanted !== '' && !fleet.plainNames[slot]!.includes(wanted)) return false
      if (fence !== undefined && !isInside([fleet.lng[slot]!, fleet.lat[slot]!], fence)) return false
      if (hubId === '' && teamId === '' && tag === '') return true
      const facts = live.facts.get(fleet.ids[slot]!)
      if (tag !== '' && facts?.tags.includes(tag) !== true) return false
      return (hubId === '' || facts?.hubId === hubId) && (teamId === '' || facts?.teamId === teamId)
    })
  }
}

export const filter = new Filter()
