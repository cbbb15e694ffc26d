import type { Test } from 'tap'
import { identityContext, type IdentityConfig } from '../../src/features/identity/context.ts'
import { createAuthenticator } from '../../src/features/identity/sessions/authenticate.ts'
import type { PasswordStrength } from '../../src/features/identity/passwords/password-strength.ts'
import type { LinkKind } from '../../src/features/identity/events.ts'
import { linkToken } from '../../src/features/identity/links/links.ts'
import { organization } from '../../src/features/identity/organizations/organization.ts'
import { role } from '../../src/features/identity/users/role.ts'
import { type UserAccessChange, watchAccess } from '../../src/features/identity/sessions/watch-access.ts'
import type { Passwords } from '../../src/features/identity/passwords/passwords.ts'
import { identityRoutes } from '../../src/features/identity/routes.ts'
import { SIGN_INS_USED } from '../../src/features/identity/single-use.ts'
import { user } from '../../src/features/identity/users/user.ts'
import { appIntegration, appIntegrationRoutes } from '../../src/features/integrations/app-integration.ts'
import { addon } from '../../src/features/addons/addon.ts'
import { pluginSetting } from '../../src/features/plugins/plugin-setting.ts'
import { dataRoutes } from '../../src/features/data/api.ts'
import { dataType } from '../../src/features/data/data-type.ts'
import { record } from '../../src/features/data/record.ts'
import { recordFiles } from '../../src/features/data/record-files.ts'
import { RecordWriter } from '../../src/features/data/record-writer.ts'
import { fileRoutes } from '../../src/features/files/api.ts'
import { taskFiles } from '../../src/features/tasks/task-files.ts'
import { TaskWriter } from '../../src/features/tasks/task-writer.ts'
import { Uploads } from '../../src/kit/files/uploads.ts'
import { schedule } from '../../src/features/tasks/schedule.ts'
import { scheduleRoutes } from '../../src/features/tasks/schedule-api.ts'
import { taskRoutes } from '../../src/features/tasks/api.ts'
import { task } from '../../src/features/tasks/task.ts'
import { routingRoutes } from '../../src/features/routing/api.ts'
import { routingResult } from '../../src/features/routing/result.ts'
import { ROUTING_BOUNDS } from '../../src/features/routing/views.ts'
import { JobPlaces } from '../../src/kit/jobs/asking.ts'
import { flow } from '../../src/features/flows/flow.ts'
import { readVersion } from '../../src/features/flows/read-version.ts'
import { notificationRoutes } from '../../src/features/notifications/api.ts'
import { hub } from '../../src/features/hubs/hub.ts'
import { hubRoutes } from '../../src/features/hubs/hub-routes.ts'
import { team } from '../../src/features/teams/team.ts'
import { tracker } from '../../src/features/trackers/declaration.ts'
import { vehicle } from '../../src/features/vehicles/vehicle.ts'
import type { EventLog } from '../../src/engines/event-log.ts'
import type { Method, Route } from '../../src/kit/http/route.ts'
import type { UserCaller } from '../../src/kernel/caller.ts'
import { access } from '../../projections/access.ts'
import { directory } from '../../projections/directory.ts'
import { notifications } from '../../projections/notifications.ts'
import { processes } from '../../projections/processes.ts'
import { auditedPrefixes, auditEntry } from '../../src/features/audit/views.ts'
import type { DeletedRecords } from '../../src/processes/erase-organization.ts'
import { FEATURES } from '../../src/product.ts'
import { processesOf } from '../../src/product-parts.ts'
import { authenticateService } from '../../src/features/identity/sessions/authenticate-service.ts'
import { isServiceKey, SERVICE_ACCOUNTS_TABLE } from '../../src/features/service-accounts/views.ts'
import type { ApiServices } from '../../src/feature.ts'
import type { ResourceDeclaration } from '../../src/kit/resource/declaration.ts'
import { ProcessRunner } from '../../src/processes/runner.ts'
import { routeCaller, type CallAnswer, type CallOptions } from './call-route.ts'
import { FakeClock } from './fake-clock.ts'
import { openServices, startProjections, type TestServices } from './open-services.ts'
import { folderOf } from './folder-of.ts'
import { QuickPasswords } from './quick-passwords.ts'

/** Service accounts, whose rules of what may be given their feature hands in. */
const SERVICE_ACCOUNTS = FEATURES.find(({ resources = [] }) =>
  resources.some(({ table }) => table.name === SERVICE_ACCOUNTS_TABLE),
)

const RESOURCES = [
  ...(SERVICE_ACCOUNTS?.resources ?? []),
  organization,
  role,
  user,
  hub,
  team,
  vehicle,
  tracker,
  appIntegration,
  pluginSetting,
  addon,
  dataType,
  record,
  flow,
  task,
  schedule,
  routingResult,
]

/** What is weak is tested by itself: each process would load the dictionaries. */
const ANY_PASSWORD = { assertStrong: async () => undefined } as unknown as PasswordStrength

/** Of one attachment. */
export const FILE_BYTES_MAX = 1024 * 1024

export interface Session {
  token: string
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
  body: any
  email: string
  call(method: Method, url: string, body?: unknown, options?: CallOptions): Promise<CallAnswer>
}

/** Every test signs up from one address. */
export const IDENTITY_CONFIG: IdentityConfig = {
  signup: 'open',
  signupsPerAddress: 1_000,
  organizationsPerUser: 20,
  tokenTtlMs: 24 * 3_600_000,
  publicUrl: 'https://waymark.example.com',
}

/** Everything of identity, hubs, teams, vehicles and trackers over the embedded engines; `signup` and `login` answer sessions. */
export const openIdentity = async (
  t: Test,
  config: Partial<IdentityConfig> = {},
  further: (services: TestServices) => Route[] = () => [],
  folder = folderOf(t),
  /** Resources that are known beside those that are served here. */
  known: readonly { declaration: ResourceDeclaration }[] = [],
) => {
  const clock = new FakeClock()
  const services = await openServices(folder, clock, [...RESOURCES, ...known])
  const projections = [directory(RESOURCES.map(({ rows }) => rows)), access, notifications, processes]
  await services.tables.declare(SIGN_INS_USED)
  for (const { table } of FEATURES.flatMap((feature) => feature.keptJobs ?? [])) await services.tables.declare(table)
  const { runner, settle } = await startProjections(services, projections)
  const passwords: Passwords = new QuickPasswords()
  const settings = { ...IDENTITY_CONFIG, ...config }
  /** A service of its own over the same engines, with another look at the log. */
  const accountRoutes = (await SERVICE_ACCOUNTS?.routes?.(services as unknown as ApiServices)) ?? []
  const over = (log: EventLog) => {
    const runs = new ProcessRunner({ ...services, log })
    const these = { ...services, log, processes: runs }
    const context = { ...identityContext(these, settings), passwords, strength: ANY_PASSWORD }
    runs.know(processesOf(these, deletedIn(log)))
    runs.startCarryingOn()
    const uploads = new Uploads({ files: services.files, bytesMax: FILE_BYTES_MAX })
    const holders = [taskFiles(these, new TaskWriter(these)), recordFiles(these, new RecordWriter(these))]
    const routes = [
      identityRoutes(context),
      hubRoutes(these),
      flow.routes(these, { read: readVersion(these) }),
      scheduleRoutes(these),
      taskRoutes({ ...these, uploads, config: { offlineMaxMs: 7 * 86_400_000 } }),
      routingRoutes({ ...these, places: new JobPlaces(these.tables, ROUTING_BOUNDS) }),
      team.routes(these),
      vehicle.routes(these),
      tracker.routes(these),
      pluginSetting.routes(these),
      dataRoutes({ ...these, uploads }),
      fileRoutes({ files: these.files, uploads, holders }),
      notificationRoutes(these),
      appIntegrationRoutes(these),
      accountRoutes,
      further(these),
    ].flat()
    return { runs, context, routes, call: routeCaller({ routes, clock, settle }) }
  }
  const { runs, context, routes, call } = over(services.log)
  const used = (jti: string, expiresAt: number): void => context.uses.note(jti, expiresAt)
  const authenticator = createAuthenticator({ ...services, used }, context.tokens)
  const accessChanges: UserAccessChange[] = []
  const watching = await watchAccess(services, (change) => void accessChanges.push(change))
  const close = async (): Promise<void> => {
    await watching.close()
    await runs.stopCarryingOn()
    await runner.close()
    await services.close()
  }
  let closing: Promise<void> | undefined
  const closeOnce = (): Promise<void> => (closing ??= close())
  t.teardown(closeOnce)

  const sessionOf = (answer: CallAnswer, email: string): Session => {
    if (answer.status !== 200) throw new Error(`${answer.status} ${JSON.stringify(answer.body)}`)
    const { token } = answer.body
    return {
      token,
      email,
      body: answer.body,
      call: async (method, url, body, options) => {
        const caller = await authenticator.authenticate(token).catch((error: Error & { status?: number }) => {
          if (error.status === 401) return undefined
          throw error
        })
        return call(method, url, { ...options, caller, body })
      },
    }
  }
  let people = 0
  const signup = async (fields: object = {}): Promise<Session> => {
    const email = `person${++people}@example.com`
    const hubFields = { hubName: 'Main', hubLat: 52.2, hubLng: 21 }
    const body = {
      name: `Person ${people}`,
      email,
      password: PASSWORD,
      organizationName: `Organization ${people}`,
      ...hubFields,
      ...fields,
    }
    return sessionOf(await call('POST', '/auth/signup', { body }), body.email)
  }
  const login = async (email: string, password = PASSWORD, options: CallOptions = {}): Promise<Session> =>
    sessionOf(await call('POST', '/auth/login', { ...options, body: { email, password } }), email)
  /** A role's id by its key. */
  const roleId = async (session: Session, key: string): Promise<string> =>
    (await session.call('GET', `/roles?key=${key}`)).body.data[0]._id
  return {
    ...services,
    folder,
    over,
    runs,
    runner,
    settle,
    context,
    authenticator,
    accessChanges,
    call,
    signup,
    login,
    roleId,
    routes,
    projections,
    close: closeOnce,
    session: sessionOf,
    /** Calls with the key of a service account, as the door takes it. */
    program: (key: string) => async (method: Method, url: string, body?: unknown, options?: CallOptions) => {
      const caller = isServiceKey(key)
        ? await authenticateService({ ...services, used }, key).catch((error: Error & { status?: number }) => {
            if (error.status === 401) return undefined
            throw error
          })
        : undefined
      return call(method, url, { ...options, caller, body })
    },
    /** A session's user as they are now. */
    callerOf: async ({ token }: Session): Promise<UserCaller> => {
      const caller = await authenticator.authenticate(token)
      if (caller?.kind !== 'user') throw new Error('no user')
      return caller
    },
  }
}

/** The secret of the link that was issued last, as its mail brings it. */
export const issuedToken = async (
  { context, keyring }: Pick<Awaited<ReturnType<typeof openIdentity>>, 'context' | 'keyring'>,
  email: string,
  kind: LinkKind,
): Promise<string> => {
  const person = await context.people.findByEmail(email)
  const link = person?.state.links.findLast((one) => one.kind === kind)
  if (person === undefined || link === undefined) throw new Error(`no ${kind} for ${email}`)
  return linkToken(keyring, person.identityId, link.linkId)
}

export const PASSWORD = 'Correct-horse-7-battery'

/** What the audit log would say was deleted, straight from the log. */
const deletedIn = (log: EventLog): DeletedRecords =>
  async function* (organizationId) {
    const nouns = new Set(RESOURCES.map(({ declaration }) => declaration.noun))
    const end = new AbortController()
    for await (const { events, caughtUp } of log.follow({ prefixes: auditedPrefixes(nouns) }, undefined, end.signal)) {
      for (const event of events) {
        const entry = auditEntry(event, nouns)
        if (entry?.organizationId !== organizationId || entry.action !== 'deleted') continue
        yield { noun: entry.noun, id: entry.resourceId }
      }
      if (caughtUp) break
    }
    end.abort()
  }
