import type { Feature } from '../../feature.ts'
import { team } from './team.ts'

export const teams: Feature = { resources: [team], routes: (services) => team.routes(services) }
