import { SHARE, SHARE_STREAMS, SHARE_TOKENS, type ShareTokenRow } from '../src/features/shares/views.ts'
import { decodeJson } from '../src/kernel/event.ts'
import { NO_ORGANIZATION } from '../src/kernel/table.ts'
import { idOfStream, type ResourceData } from '../src/kit/commands/declared-event.ts'
import type { Projection } from '../src/kit/consumers/projection.ts'

export const shareTokens: Projection = {
  name: 'share-tokens',
  version: 1,
  tables: [SHARE_TOKENS],
  prefixes: [SHARE_STREAMS],
  inputs: Object.values(SHARE),
  apply: ({ type, stream, data }, rows) => {
    const { organizationId, values } = decodeJson<ResourceData>(data)
    const hash = values.tokenHash as string
    if (type === SHARE.deleted) return rows.delete(SHARE_TOKENS.name, NO_ORGANIZATION, hash)
    rows.put(SHARE_TOKENS.name, NO_ORGANIZATION, hash, {
      organizationId,
      shareId: idOfStream(stream),
    } satisfies ShareTokenRow)
  },
}
