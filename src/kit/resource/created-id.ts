import { invalid } from '../../kernel/errors.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { ResourceDeclaration } from './declaration.ts'
import type { WriteOrigin } from './writes.ts'

export interface CreatedId {
  id: string
  /** It was drawn for this write, so no record has it yet. */
  isDrawn: boolean
}

/** The id of the record that this body creates; drawn from `ids` where the body has none. @throws Failure invalid */
export const createdId = (
  { idFrom }: Pick<ResourceDeclaration, 'idFrom'>,
  { organizationId, ids, isOwnId = false }: Pick<WriteOrigin, 'organizationId' | 'ids' | 'isOwnId'>,
  body: JsonObject,
): CreatedId => {
  const sent = (body._id as string | undefined)?.toLowerCase()
  const value = idFrom === undefined ? undefined : body[idFrom.field]
  if (idFrom === undefined || typeof value !== 'string')
    return sent === undefined ? { id: ids.next(), isDrawn: ids.isRandom === true } : { id: sent, isDrawn: isOwnId }
  const id = idFrom.idOf(organizationId, value)
  if (sent !== undefined && sent !== id) throw invalid('/_id', `follows from ${idFrom.field}; leave it out`)
  return { id, isDrawn: false }
}
