import type { TableStore } from '../../../engines/table-store.ts'
import { userCaller } from '../../../features/identity/sessions/authenticate.ts'
import {
  ACCESS_ROLES,
  ACCESS_USERS,
  type AccessRoleRow,
  type AccessUserRow,
  USERS_TABLE,
} from '../../../features/identity/views.ts'
import { breathe } from '../../../kernel/breath.ts'
import { valueAt } from '../../../kernel/json.ts'
import { isRecipient } from '../../../kernel/recipient.ts'
import { rulesData } from '../event-data.ts'
import type { Work } from './action.ts'
import { isId } from './inside.ts'
import {
  type NotificationChannel,
  type NotificationDetails,
  type Recipient,
  RECIPIENTS_MAX,
  recipientsOf,
} from './notification-details.ts'

export interface Resolved {
  /** Ids of users, addresses and urls, each once and at most `RECIPIENTS_MAX`. */
  recipients: string[]
  /** Reasons why other named recipients are left out; short sentences without addresses. */
  faults: string[]
  /** There are more than the maximum. */
  isCut: boolean
}

/** Maximum of values of all refs together that are looked at. */
const VALUES_MAX = 1_000
/** Maximum of users of all roles together that are looked at: most may not see the subject. */
const ROLE_USERS_MAX = 5_000
const PAGE_ROWS = 100

export const GONE = 'the user is not active'
export const BLIND = 'the user may not see this'

/** Resolves `to` now: users who are not active, or may not see the event's subject, are left out. */
export const resolveRecipients = async (
  tables: Pick<TableStore, 'getMany' | 'find'>,
  work: Work,
): Promise<Resolved> => {
  const resolving = new Resolving(tables, work)
  // Recipients named by id or address come before those of refs and roles.
  const named = recipientsOf(work.details)
  for (const rank of [isNamed, isRef, isRole]) for (const one of named.filter(rank)) await resolving.add(one)
  return resolving.resolved()
}

const isNamed = (one: Recipient): boolean => typeof one === 'string'
const isRef = (one: Recipient): boolean => typeof one !== 'string' && 'ref' in one
const isRole = (one: Recipient): boolean => typeof one !== 'string' && 'roleId' in one

class Resolving {
  private readonly tables: Pick<TableStore, 'getMany' | 'find'>
  private readonly work: Work
  private readonly channel: NotificationChannel
  /** By what names the same one: addresses of mail compare without case. */
  private readonly recipients = new Map<string, string>()
  private readonly faults: string[] = []
  private readonly roles = new Map<string, AccessRoleRow | undefined>()
  /** The maximum of recipients is reached. */
  private isCut = false
  /** Some were not looked at. */
  private isPartial = false
  private valuesLeft = VALUES_MAX
  private usersLeft = ROLE_USERS_MAX

  constructor(tables: Pick<TableStore, 'getMany' | 'find'>, work: Work) {
    this.tables = tables
    this.work = work
    this.channel = (work.details as unknown as NotificationDetails).channel
  }

  resolved(): Resolved {
    return { recipients: [...this.recipients.values()], faults: this.faults, isCut: this.isCut || this.isPartial }
  }

  async add(one: Recipient): Promise<void> {
    if (this.isCut) return
    if (typeof one !== 'string') return 'ref' in one ? this.addRef(one.ref) : this.addRole(one.roleId)
    if (!isId(one)) return this.take(one)
    const [refusal] = await this.addUsers([one])
    if (refusal !== undefined) this.faults.push(refusal)
  }

  private async addRef(path: string): Promise<void> {
    const { run, data, editor } = this.work
    const found = valueAt(rulesData(run.trigger.event, data), path.split('.'))
    const all: readonly unknown[] = Array.isArray(found) ? found : [found]
    const values = all.slice(0, this.valuesLeft).filter(isSaid)
    const isWhole = all.length <= this.valuesLeft
    this.valuesLeft = Math.max(0, this.valuesLeft - all.length)
    const ids = values.filter((value): value is string => typeof value === 'string' && isId(value))
    const seen = editor.permissions.has('view/user') ? ids : ids.filter((id) => id.toLowerCase() === editor.userId)
    const userIds = [...new Set(seen.map((id) => id.toLowerCase()))]
    for (let from = 0; from < userIds.length && !this.isCut; from += PAGE_ROWS) {
      await breathe()
      await this.addUsers(userIds.slice(from, from + PAGE_ROWS))
    }
    for (const value of values) {
      if (typeof value === 'string' && isId(value)) continue
      if (this.channel === 'email' && typeof value === 'string' && isRecipient(value)) this.take(value)
      else this.refuse(path)
    }
    if (!isWhole) this.isPartial = true
  }

  private refuse(path: string): void {
    const what = this.channel === 'email' ? 'a user or a public e-mail address' : 'a user'
    const fault = `${path} is not ${what}`
    if (!this.faults.includes(fault)) this.faults.push(fault)
  }

  private async addRole(roleId: string): Promise<void> {
    const { organizationId } = this.work.automation
    let after: string | undefined
    while (this.usersLeft > 0 && !this.isCut) {
      await breathe()
      const where = { roleId, status: 'active' }
      const limit = Math.min(PAGE_ROWS, this.usersLeft)
      const page = await this.tables.find(USERS_TABLE, organizationId, { where, limit, after })
      this.usersLeft -= page.rows.length
      await this.addUsers(page.rows.map(({ id }) => id))
      if (page.next === null) return
      after = page.next
    }
    this.isPartial = true
  }

  /** Answers the reasons why users are left out, in the order of the ids; undefined for recipients. */
  private async addUsers(ids: readonly string[]): Promise<(string | undefined)[]> {
    if (ids.length === 0) return []
    const { organizationId } = this.work.automation
    const rows = await this.tables.getMany<AccessUserRow>(ACCESS_USERS.name, organizationId, ids)
    await this.loadRoles(rows.flatMap((row) => (row === undefined ? [] : [row.roleId])))
    return ids.map((userId, i) => {
      const row = rows[i]
      if (row?.status !== 'active') return GONE
      const token = { organizationId, userId, jti: '', expiresAt: 0 }
      const isSeen = this.work.isSeenBy(userCaller(token, row, this.roles.get(row.roleId), undefined))
      if (isSeen) this.take(userId)
      return isSeen ? undefined : BLIND
    })
  }

  private async loadRoles(roleIds: readonly string[]): Promise<void> {
    const missing = [...new Set(roleIds)].filter((id) => !this.roles.has(id))
    if (missing.length === 0) return
    const { organizationId } = this.work.automation
    const rows = await this.tables.getMany<AccessRoleRow>(ACCESS_ROLES.name, organizationId, missing)
    for (const [i, id] of missing.entries()) this.roles.set(id, rows[i])
  }

  private take(recipient: string): void {
    const key = this.channel === 'email' ? recipient.toLowerCase() : recipient
    if (this.recipients.has(key)) return
    if (this.recipients.size >= RECIPIENTS_MAX) this.isCut = true
    else this.recipients.set(key, recipient)
  }
}

/** An empty component names nobody. */
const isSaid = (value: unknown): boolean => value !== undefined && value !== null && value !== ''
