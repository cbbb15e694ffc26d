import type { ResourceWriter } from '../../kit/resource/write.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { Services } from '../../kit/services.ts'
import { LoginThrottle } from './sign-in/login-throttle.ts'
import { MailLimits } from './links/mail-limits.ts'
import { organization } from './organizations/organization.ts'
import { PasswordStrength } from './passwords/password-strength.ts'
import { Passwords } from './passwords/passwords.ts'
import { People } from './people.ts'
import { role } from './users/role.ts'
import { SessionUses } from './sessions/session-uses.ts'
import { Sessions } from './sessions/sessions.ts'
import { Tokens } from './sessions/tokens.ts'
import { UnverifiedMails } from './links/unverified-mails.ts'
import { user } from './users/user.ts'

export interface IdentityConfig {
  /** `open`: anybody may sign up; `first`: only while there is no organization; `closed`: nobody. */
  signup: 'open' | 'first' | 'closed'
  /** Sign-ups per hour from one network address. */
  signupsPerAddress: number
  /** Organizations that one identity may create. */
  organizationsPerUser: number
  tokenTtlMs: number
  publicUrl: string
}

export type IdentityServices = ResourceServices & Pick<Services, 'clock' | 'logger' | 'files'>

export interface IdentityContext {
  services: IdentityServices
  config: IdentityConfig
  people: People
  passwords: Passwords
  strength: PasswordStrength
  tokens: Tokens
  throttle: LoginThrottle
  sessions: Sessions
  uses: SessionUses
  limits: MailLimits
  unverified: UnverifiedMails
  organizations: ResourceWriter
  users: ResourceWriter
  roles: ResourceWriter
}

export const identityContext = (services: IdentityServices, config: IdentityConfig): IdentityContext => ({
  services,
  config,
  people: new People(services),
  passwords: new Passwords(),
  strength: new PasswordStrength(services.clock),
  tokens: new Tokens(services.keyring, config.tokenTtlMs),
  throttle: new LoginThrottle(services.tables, services.keyring),
  sessions: new Sessions(services.log),
  uses: new SessionUses(services),
  limits: new MailLimits(services.tables, services.keyring),
  unverified: new UnverifiedMails(services),
  organizations: organization.writer(services),
  users: user.writer(services),
  roles: role.writer(services),
})
