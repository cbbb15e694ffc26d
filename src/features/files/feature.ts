import type { Feature } from '../../feature.ts'
import { fileRoutes } from './api.ts'

export const files: Feature = { routes: fileRoutes }
