import { pluginSetting } from '../../features/plugins/plugin-setting.ts'
import { decodeJson, type Fact, type RecordedEvent } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import { eventTypes, idOfStream, type ResourceData } from '../../kit/commands/declared-event.ts'
import { appendFacts } from '../../kit/commands/handle-command.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import { Follower, type IsOurs } from '../../kit/consumers/follower.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { Services } from '../../kit/services.ts'

export const SEAL_SETTINGS = 'seal-settings'

interface SealServices extends ResourceServices, Pick<Services, 'log' | 'tables' | 'clock' | 'logger'> {
  isOurs?: IsOurs
}

const { noun } = pluginSetting.declaration
const types = eventTypes(noun)

/**
 * Rewrites settings of plugins that are in the log in clear, as written by earlier versions, and removes those events.
 * The log is walked once: from then on the checkpoint says that there are none.
 */
export const sealSettings = (services: SealServices): Follower =>
  new Follower(services, {
    name: SEAL_SETTINGS,
    source: { prefixes: [`${noun}-`] },
    handle: async ({ events }, signal) => {
      const inClear = events.filter(isInClear)
      if (inClear.length === 0) return undefined
      for (const event of inClear) if (!signal.aborted) await seal(services, event)
      return []
    },
  }).start(services.tables)

const isInClear = ({ data }: RecordedEvent): boolean =>
  decodeJson<Partial<ResourceData>>(data).values?.settings !== undefined

const seal = async (services: SealServices, { stream, revision, data }: RecordedEvent): Promise<void> => {
  const { log, clock } = services
  const [newest] = await log.read(stream, 'end', 1, 'backwards')
  if (newest === undefined) return
  if (isInClear(newest)) {
    const { organizationId } = decodeJson<ResourceData>(data)
    const ids = { next: () => idFrom(SEAL_SETTINGS, `${stream}.${newest.revision}`) }
    const metadata = { organizationId, actor: 'reactor:upkeep' }
    if (newest.type === types.deleted)
      await appendFacts(log, stream, [emptied(newest)], [ids.next()], newest.revision + 1, metadata)
    else
      await pluginSetting
        .writer(services)
        .update({ organizationId, now: clock.now(), ids, metadata }, idOfStream(stream), same)
  }
  await log.truncateBefore(stream, revision + 1)
}

const same = (values: JsonObject): JsonObject => values

/** The deletion without the deleted data. */
const emptied = ({ type, data }: RecordedEvent): Fact => {
  const deletion = decodeJson<ResourceData>(data)
  const { settings: _settings, ...values } = deletion.values
  return { type, data: { ...deletion, values } }
}
