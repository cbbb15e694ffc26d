import { unlessGone } from '../kernel/errors.ts'
import { MAKE_HUB, type MakeHubData } from '../features/hubs/processes.ts'
import { defineProcess, type Process } from '../kit/commands/process.ts'
import { ensureMade, type Office } from './office.ts'

/** Creates a hub and adds it to its creator's list of hubs, who would not see it otherwise. */
export const makeHub = (office: Office): Process<MakeHubData> =>
  defineProcess(MAKE_HUB, [
    { name: 'hub', run: ({ hubId, values }, originOf) => ensureMade(office.hubs, originOf(), hubId, values) },
    {
      name: 'list',
      run: ({ hubId, userId, isService }, originOf) => {
        const makers = isService === true ? office.serviceAccounts : office.users
        const extended = ({ hubId: list, ...before }: { hubId?: unknown }) => {
          const hubs = (list ?? []) as string[]
          return { ...before, hubId: hubs.includes(hubId) ? hubs : [...hubs, hubId] }
        }
        return unlessGone(makers.update(originOf(), userId, extended).then(({ wrote }) => wrote))
      },
    },
  ])
