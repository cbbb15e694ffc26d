// What is being drawn or typed on the page of geofences: it is kept when the page is left.
import type { Json } from '../api/client.ts'
import type { Draft } from './draft.svelte.ts'
import { isSame, type Rules, rulesOf } from './rules.ts'

interface Typed {
  rules: Rules
  /** Of the group when they were typed: what others change meanwhile is not undone. */
  version: number
}

class Drawing {
  draft = $state.raw<Draft>()
  /** Rules that are not saved, by group. */
  typed = $state.raw<{ readonly [groupId: string]: Typed }>({})

  get isUnsaved(): boolean {
    return this.draft?.isTouched === true || Object.keys(this.typed).length > 0
  }

  rulesOf(group: Json): Rules {
    return this.typed[group._id]?.rules ?? rulesOf(group)
  }

  type(group: Json, rules: Rules): void {
    const version = this.typed[group._id]?.version ?? group.version
    if (isSame(rules, rulesOf(group))) this.forgetRules(group._id)
    else this.typed = { ...this.typed, [group._id]: { rules, version } }
  }

  forgetRules(groupId: string): void {
    const { [groupId]: _forgotten, ...others } = this.typed
    this.typed = others
  }
}

export const drawing = new Drawing()
