import type { EventLog } from '../../engines/event-log.ts'
import type { UserCaller } from '../../kernel/caller.ts'
import { invalid } from '../../kernel/errors.ts'
import { decodeJson } from '../../kernel/event.ts'
import type { JsonObject } from '../../kernel/json.ts'
import type { ResourceData } from '../../kit/commands/declared-event.ts'
import type { Route } from '../../kit/http/route.ts'
import { withinQuotas } from '../../kit/quotas/quotas.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { ResourceWriter } from '../../kit/resource/write.ts'
import { asService, type WriteOrigin, type Written } from '../../kit/resource/writes.ts'
import { hub } from './hub.ts'
import { MAKE_HUB } from './processes.ts'

const HUBS_MAX = 500

/** Hubs; one created by a user or service account that sees only some hubs is added to their list. */
export const hubRoutes = (services: ResourceServices): Route[] => {
  const writer = hub.writer(services)
  return hub.routes(services, {
    writes: {
      create: (origin, body) => {
        const { caller } = origin
        return caller === undefined || caller.hubIds === 'all'
          ? writer.create(origin, body)
          : makeOwn(services, writer, { ...origin, caller }, body)
      },
      change: (origin, change) => writer.change(origin, change),
      delete: (origin, deletion) => writer.delete(origin, deletion),
    },
  })
}

/** @throws Failure invalid if the caller's list of hubs is full, quota, conflict if the id is taken */
const makeOwn = async (
  services: ResourceServices,
  writer: ResourceWriter,
  origin: WriteOrigin & { caller: UserCaller },
  body: JsonObject,
): Promise<Written> => {
  const { userId, isService } = origin.caller
  const maker = `${isService === true ? 'serviceAccount' : 'user'}-${userId}`
  const hubId = writer.idOf(origin, body)
  const { _id: _sent, ...values } = body
  let repeat: Written | undefined
  const { wrote } = await withinQuotas(services.quotas, origin.organizationId, async (take) => ({
    wrote: await services.processes.run(MAKE_HUB, hubId, asService(origin), async () => {
      repeat = await writer.madeBefore(origin, hubId)
      if (repeat !== undefined || (await writer.load(hubId)).state.status !== 'absent') return undefined
      if ((await hubsOf(services.log, maker)).length >= HUBS_MAX)
        throw invalid('/name', `cannot be made: you have ${HUBS_MAX} hubs already`)
      await take(hub.declaration.plural)
      return { hubId, values, userId, ...(isService === true && { isService }) }
    }),
  }))
  if (repeat !== undefined) return repeat
  // A repeated request finds its own hub; another's hub must not even be revealed.
  const hubIds = await hubsOf(services.log, maker)
  const made = await writer.create({ ...origin, caller: { ...origin.caller, hubIds } }, { ...values, _id: hubId })
  return { ...made, wrote: wrote ?? made.wrote }
}

const hubsOf = async (log: Pick<EventLog, 'read'>, maker: string): Promise<string[]> => {
  const [last] = await log.read(maker, 'end', 1, 'backwards')
  return last === undefined ? [] : ((decodeJson<ResourceData>(last.data).values.hubId ?? []) as string[])
}
