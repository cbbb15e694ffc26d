import { isDeepStrictEqual } from 'node:util'
import { Failure } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { pick } from './pick.ts'
import type { ResourceDeclaration, ResourceServices } from './declaration.ts'
import type { ResourceState } from './decider.ts'
import type { WriteOrigin, Written } from './writes.ts'

/** A value shown once, in clear, and the values that are stored for it. */
export interface MadeOnce {
  told: JsonObject
  kept: JsonObject
}

/** A repeated request draws the same seed, and so the same value. */
export const madeOnce = (
  { secrets }: Pick<ResourceDeclaration, 'secrets'>,
  services: ResourceServices,
  { ids }: WriteOrigin,
  id: string,
): MadeOnce | undefined => {
  const declared = secrets?.told
  if (declared === undefined) return undefined
  const { told, kept } = declared.make(id, services, ids.next())
  return { told: { [declared.member]: told }, kept }
}

/** The secret, as long as the record still has it. */
export const toldOf = (once: MadeOnce | undefined, { status, values }: ResourceState): Pick<Written, 'told'> => {
  if (once === undefined || status !== 'live') return {}
  return isDeepStrictEqual(pick(values, Object.keys(once.kept)), once.kept) ? { told: once.told } : {}
}

/** @throws Failure conflict when a repeated rotation finds a later rotation. */
export const stillTold = (once: MadeOnce, state: ResourceState): Pick<Written, 'told'> => {
  const told = toldOf(once, state)
  if (told.told === undefined) throw replacedSince()
  return told
}

/** A repeated rotation finds a later rotation. */
export const replacedSince = (): Failure =>
  new Failure('conflict', { message: 'It was replaced again since; replace it once more to be told one that holds.' })
