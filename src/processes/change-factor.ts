import { CHANGE_FACTOR, type ChangeFactorData } from '../features/identity/processes.ts'
import { defineProcess, type Process } from '../kit/commands/process.ts'
import { issueLink, type Office } from './office.ts'

/**
 * A second factor is confirmed or taken off. Every other session ends after that, so that each one that is left has passed
 * the factor: a sign-in that began before finds the change, or is among those that end.
 */
export const changeFactor = (office: Office): Process<ChangeFactorData> =>
  defineProcess(CHANGE_FACTOR, [
    {
      name: 'identity',
      run: ({ identityId, change }, originOf) => office.people.command(identityId, change, originOf()),
    },
    {
      name: 'sessions',
      run: ({ identityId, change: { at }, keeps }, originOf) =>
        office.sessions.endAll(identityId, { except: keeps, at }, originOf()),
    },
    {
      name: 'reopening',
      run: async ({ identityId, reopeningLink }, originOf) =>
        reopeningLink && issueLink(office, originOf(), identityId, reopeningLink),
    },
  ])
