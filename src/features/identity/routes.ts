import type { Route } from '../../kit/http/route.ts'
import type { IdentityContext } from './context.ts'
import { createOrganizationRoute } from './organizations/create-organization.ts'
import { eraseOrganizationRoute } from './organizations/erase-organization.ts'
import { invitationRoutes } from './links/invitation-routes.ts'
import { linkRoutes } from './links/link-routes.ts'
import { logoRoutes } from './organizations/logo.ts'
import { organizationRoutes } from './organizations/organization-routes.ts'
import { ownUserRoute } from './users/own-user-route.ts'
import { ownSessionRoutes } from './sessions/own-sessions.ts'
import { ownPermissionsRoute, permissionsRoute } from './users/permissions-route.ts'
import { role } from './users/role.ts'
import { secondFactorRoutes } from './second-factor/second-factor-routes.ts'
import { sessionRoutes } from './sessions/session-routes.ts'
import { secondStepRoute } from './sign-in/sign-in.ts'
import { signupRoute } from './sign-in/signup-routes.ts'
import { switchOrganizationRoute } from './sessions/switch-organization.ts'
import { userRoutes } from './users/user-routes.ts'

export const identityRoutes = (context: IdentityContext): Route[] => [
  signupRoute(context),
  ...sessionRoutes(context),
  secondStepRoute(context),
  ...ownSessionRoutes(context),
  ...secondFactorRoutes(context),
  switchOrganizationRoute(context),
  createOrganizationRoute(context),
  ...invitationRoutes(context),
  ...linkRoutes(context),
  ...organizationRoutes(context),
  eraseOrganizationRoute(context),
  ...logoRoutes(context),
  ownPermissionsRoute(),
  ...userRoutes(context),
  ownUserRoute(context),
  ...role.routes(context.services),
  permissionsRoute(),
]
