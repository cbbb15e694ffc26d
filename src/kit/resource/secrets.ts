import type { Json, JsonObject } from '../../kernel/json.ts'
import type { Row } from '../../kernel/table.ts'
import type { Keyring } from '../keys/keyring.ts'
import { pick } from './pick.ts'
import type { ResourceDeclaration } from './declaration.ts'
import { writeOnlyOf } from './schemas.ts'
import type { ResourceState } from './decider.ts'

type Sealed = ResourceState['sealed']

/** The write-only and sealed fields of a resource: in clear while a write is decided, encrypted in its events. */
export class ResourceSecrets {
  private readonly declaration: ResourceDeclaration
  private readonly keyring: Keyring

  constructor(declaration: ResourceDeclaration, keyring: Keyring) {
    this.declaration = declaration
    this.keyring = keyring
  }

  /** Takes secrets out of the values. An unchanged one stays encrypted as it was in `before`. */
  seal(values: JsonObject, before: Sealed): { values: JsonObject; sealed?: Sealed } {
    const secret = [...writeOnlyOf(this.declaration), ...(this.declaration.secrets?.sealed ?? [])]
    if (secret.length === 0) return { values }
    const sealed: Sealed = {}
    for (const name of secret) {
      if (values[name] === undefined) continue
      const text = JSON.stringify(values[name])
      const isKept = before[name] !== undefined && this.keyring.decrypt(this.purpose(name), before[name]) === text
      sealed[name] = isKept ? before[name] : this.keyring.encrypt(this.purpose(name), text)
    }
    const shown = Object.keys(values).filter((name) => !secret.includes(name))
    return { values: pick(values, shown), sealed }
  }

  /** All values, secrets in clear. */
  opened({ values, sealed }: Pick<ResourceState, 'values'> & { sealed?: Sealed }): JsonObject {
    const opened: JsonObject = { ...values }
    for (const [name, text] of Object.entries(sealed ?? {})) opened[name] = this.open(name, text)
    return opened
  }

  /** A row with its sealed fields in clear. */
  openedRow({ sealed, ...row }: Row): Row {
    const opened = Object.entries((sealed ?? {}) as Sealed).map(([name, text]) => [name, this.open(name, text)])
    return { ...row, ...Object.fromEntries(opened) }
  }

  open(field: string, sealed: string): Json {
    return JSON.parse(this.keyring.decrypt(this.purpose(field), sealed)) as Json
  }

  private purpose(field: string): string {
    return `${this.declaration.noun}.${field}`
  }
}
