import { CHANGE_FACTOR, type ChangeFactorData } from '../features/identity/processes.ts'
import { defineProcess, type Process } from '../kit/commands/process.ts'
import { issueLink, type Office } from './office.ts'

/**
 * Confirms or removes a second factor. Afterwards all other sessions end, so that each remaining one has passed the
 * factor: a sign-in that began before finds the change, or is among those that end.
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
