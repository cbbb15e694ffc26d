import type { InitializeHook, LoadHook } from 'node:module'
import type { Mutant } from './mutants.ts'

let mutant: Mutant

/** Hooks of Node's modules: one file is loaded with a change. */
export const initialize: InitializeHook<Mutant> = (data) => {
  mutant = data
}

export const load: LoadHook = async (url, context, nextLoad) => {
  const loaded = await nextLoad(url, context)
  if (!url.endsWith(`/${mutant.file}`)) return loaded
  const source = String(loaded.source)
  if (source.split(mutant.from).length !== 2) throw new Error(`${mutant.file} does not have once: ${mutant.from}`)
  return { ...loaded, source: source.replace(mutant.from, () => mutant.to) }
}
