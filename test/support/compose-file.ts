import { readFileSync } from 'node:fs'
import { parse } from 'yaml'

/** Variables of `.env.example`. */
export const exampleVariables: { [name: string]: string } = Object.fromEntries(
  [...readFileSync('.env.example', 'utf8').matchAll(/^(\w+)=(.*)$/gm)].map(([, name, value]) => [name, value]),
)

/** docker-compose.yml with the variables of `.env.example`, or without any. */
export const composeOf = (given: { [name: string]: string }) =>
  parse(
    readFileSync('docker-compose.yml', 'utf8').replace(/\$\{(\w+):-([^}]*)\}/g, (_, name, none) => given[name] ?? none),
    { merge: true },
  )

/** The environment of each process of the service in the profile `roles`, by its name there. */
export const roleEnvironments = (): { [name: string]: { [variable: string]: string } } => {
  const services = composeOf(exampleVariables).services as { [name: string]: ComposeService }
  return Object.fromEntries(
    Object.entries(services).flatMap(([name, { profiles, environment }]) =>
      profiles?.includes('roles') && environment?.WAYMARK_ROLE !== undefined ? [[name, environment]] : [],
    ),
  )
}

interface ComposeService {
  profiles?: string[]
  environment?: { [variable: string]: string }
}
