import type { Feature } from '../../feature.ts'
import { appIntegration, appIntegrationRoutes } from './app-integration.ts'

export const integrations: Feature = { resources: [appIntegration], routes: appIntegrationRoutes }
