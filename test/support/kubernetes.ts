import { readFileSync } from 'node:fs'
import { parse, parseAllDocuments } from 'yaml'

// biome-ignore lint/suspicious/noExplicitAny: a manifest of any kind
export type Manifest = any

const FOLDER = 'deploy/kubernetes'

/** The patch that each Deployment is merged with. */
export const podPatch = (): Manifest => parse(readFileSync(`${FOLDER}/pod.yaml`, 'utf8'))

export const kustomization = (): Manifest => parse(readFileSync(`${FOLDER}/kustomization.yaml`, 'utf8'))

/** What kustomization.yaml lists, as written. */
export const resources = (): Manifest[] =>
  (kustomization().resources as string[]).flatMap((file) =>
    parseAllDocuments(readFileSync(`${FOLDER}/${file}`, 'utf8')).map((document) => document.toJS()),
  )

/** The resources with what kustomize adds to pods; lists of things with a name are merged by it. */
export const merged = (): Manifest[] => {
  const { metadata: _, ...patch } = podPatch()
  return resources().map((one) => (one.kind === 'Deployment' ? mergeOf(one, patch) : one))
}

const mergeOf = (base: Manifest, patch: Manifest): Manifest => {
  if (Array.isArray(base) && Array.isArray(patch)) {
    const names = new Map(base.map((one) => [one.name, one]))
    return patch.map((one) => (names.has(one.name) ? mergeOf(names.get(one.name), one) : one))
  }
  if (typeof base !== 'object' || typeof patch !== 'object') return patch
  const both = new Set([...Object.keys(base), ...Object.keys(patch)])
  return Object.fromEntries(
    [...both].map((key) => {
      if (!(key in patch)) return [key, base[key]]
      return [key, key in base ? mergeOf(base[key], patch[key]) : patch[key]]
    }),
  )
}
