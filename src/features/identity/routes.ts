import type { Route } from '../../kit/http/route.ts'
import type { IdentityContext } from './context.ts'
import { createOrganizationRoute } from './create-organization.ts'
import { eraseOrganizationRoute } from './erase-organization.ts'
import { invitationRoutes } from './invitation-routes.ts'
import { linkRoutes } from './link-routes.ts'
import { logoRoutes } from './logo.ts'
import { organizationRoutes } from './organization-routes.ts'
import { ownUserRoute } from './own-user-route.ts'
import { ownSessionRoutes } from './own-sessions.ts'
import { permissionsRoute } from './permissions-route.ts'
import { role } from './role.ts'
import { secondFactorRoutes } from './second-factor-routes.ts'
import { sessionRoutes } from './session-routes.ts'
import { secondStepRoute } from './sign-in.ts'
import { signupRoute } from './signup-routes.ts'
import { switchOrganizationRoute } from './switch-organization.ts'
import { userRoutes } from './user-routes.ts'

/** Signing up and in, the organization, its users and roles. */
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
  ...userRoutes(context),
  ownUserRoute(context),
  ...role.routes(context.services),
  permissionsRoute(),
]
