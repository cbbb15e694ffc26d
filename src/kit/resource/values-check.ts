import { type Check, compileCheck } from '../http/validate.ts'
import { type ResourceDeclaration, valuesSchema } from './declaration.ts'

const checks = new WeakMap<ResourceDeclaration, Check>()

/**
 * The check of the values of a write. Compiled once, as the validator keeps what it compiled for good: a deletion makes
 * writers of all that may name the record.
 */
export const valuesCheck = (declaration: ResourceDeclaration): Check => {
  const check = checks.get(declaration) ?? compileCheck(valuesSchema(declaration))
  checks.set(declaration, check)
  return check
}
