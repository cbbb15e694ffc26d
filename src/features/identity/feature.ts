import { access } from '../../../projections/access.ts'
import type { Feature } from '../../feature.ts'
import { ownedPart } from '../../kit/consumers/owners.ts'
import { acceptInvitation } from '../../processes/accept-invitation.ts'
import { changeFactor } from '../../processes/change-factor.ts'
import { changeUser } from '../../processes/change-user.ts'
import { createUser } from '../../processes/create-user.ts'
import { deleteUser } from '../../processes/delete-user.ts'
import { eraseOrganization } from '../../processes/erase-organization.ts'
import { followLink, verifyAddress } from '../../processes/follow-link.ts'
import { foundOrganization } from '../../processes/found-organization.ts'
import { MAIL, sendMails } from '../../reactors/mail/send-mails.ts'
import { activeIntegration } from '../integrations/app-integration.ts'
import { AzureProvider } from './sign-in/azure-provider.ts'
import { azureRoutes } from './sign-in/azure-routes.ts'
import { identityContext } from './context.ts'
import { LOGOS, logoPath } from './organizations/logo-path.ts'
import { organization } from './organizations/organization.ts'
import { role } from './users/role.ts'
import { identityRoutes } from './routes.ts'
import { SIGN_INS_USED } from './single-use.ts'
import { user } from './users/user.ts'
import { ORGANIZATIONS_TABLE } from './views.ts'

export const identity: Feature = {
  resources: [organization, role, user],
  projections: [access],
  tables: [SIGN_INS_USED],
  routes: (services) => {
    const context = identityContext(services, { ...services.config, publicUrl: services.publicUrl })
    const azure = azureRoutes(context, {
      provider: new AzureProvider(services.caller),
      integrationOf: (appIntegrationId) => activeIntegration(services, appIntegrationId),
    })
    return [...identityRoutes(context), ...azure]
  },
  fileOwners: ({ tables }) => [
    {
      prefix: LOGOS,
      isNamed: async (key) => {
        const [, organizationId, name] = key.split('/')
        const row = await tables.get(ORGANIZATIONS_TABLE, organizationId, organizationId)
        return row?.logo === logoPath(organizationId, name)
      },
    },
  ],
  processes: ({ office, services, ...erased }) => [
    foundOrganization(office),
    createUser(office),
    changeUser(office),
    deleteUser(office),
    acceptInvitation(office),
    followLink(office),
    verifyAddress(office),
    changeFactor(office),
    eraseOrganization(office, services, erased),
  ],
  jobs: ({ reports, ...services }) => [
    ownedPart(MAIL, async (isOurs) => {
      const { clock, metrics } = services
      const onMail = (outcome: string): void => metrics.mails.inc({ outcome })
      const mails = await sendMails({ ...services, isOurs, onMail })
      return reports(mails, () => [mails.follower.lag(clock.now())])
    }),
  ],
}
