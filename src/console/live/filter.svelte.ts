// The one filter of list and map.
import { isInside } from '../map/fence-features.ts'
import { plainText } from '../parts/plain-text.ts'
import { live } from './live.svelte.ts'

class Filter {
  text = $state('')
  state = $state<number>()
  hubId = $state('')
  teamId = $state('')
  fenceId = $state('')

  get isOn(): boolean {
    return (
      this.text !== '' || this.state !== undefined || this.hubId !== '' || this.teamId !== '' || this.fenceId !== ''
    )
  }

  clear(): void {
    this.text = ''
    this.state = undefined
    this.hubId = ''
    this.teamId = ''
    this.fenceId = ''
  }

  /** Slots that pass, by name. */
  slots(): number[] {
    const { fleet } = live
    const wanted = plainText(this.text.trim())
    const fence = this.fenceId === '' ? undefined : live.fenceOf(this.fenceId)
    return fleet.sorted().filter((slot) => {
      if (this.state !== undefined && fleet.state[slot] !== this.state) return false
      if (wanted !== '' && !fleet.plainNames[slot]!.includes(wanted)) return false
      if (fence !== undefined && !isInside([fleet.lng[slot]!, fleet.lat[slot]!], fence)) return false
      if (this.hubId === '' && this.teamId === '') return true
      const facts = live.facts.get(fleet.ids[slot]!)
      return (this.hubId === '' || facts?.hubId === this.hubId) && (this.teamId === '' || facts?.teamId === this.teamId)
    })
  }
}

export const filter = new Filter()
