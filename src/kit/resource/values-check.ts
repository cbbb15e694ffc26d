import { invalid } from '../../kernel/errors.ts'
import { joined, type JsonObject } from '../../kernel/json.ts'
import { assertValid, type Check, compileCheck } from '../http/validate.ts'
import { pick, pickWithNull, withDefaults } from './pick.ts'
import type { ResourceDeclaration } from './declaration.ts'
import { valuesSchema, writeOnlyOf } from './schemas.ts'
import { mergePatch } from './merge-patch.ts'
import type { Change } from './writes.ts'

const checks = new WeakMap<ResourceDeclaration, Check>()

/**
 * The check of the values of a write. Compiled once, as the validator keeps compiled schemas for good: a deletion makes
 * writers of all resources that may name the record.
 */
export const valuesCheck = (declaration: ResourceDeclaration): Check => {
  const check = checks.get(declaration) ?? compileCheck(valuesSchema(declaration))
  checks.set(declaration, check)
  return check
}

/** The values after a change; whole and valid. */
export const changedValues = (
  declaration: ResourceDeclaration,
  check: Check,
  before: JsonObject,
  { kind, body }: Change,
): JsonObject => {
  const { fields, fixed = [], rules, body: form = {} } = declaration
  const merge = rules?.merge ?? mergePatch
  assertGuarded(declaration, before, body)
  const names = Object.keys(fields)
  const left = kind === 'replace' ? [...writeOnlyOf(declaration), ...fixed] : names
  const kept = pick(form.of?.(before) ?? before, left)
  const sent = pickWithNull(body, fields)
  for (const name of fixed)
    if (sent[name] !== undefined && sent[name] !== (before[name] ?? null))
      throw invalid(`/${name}`, 'cannot be changed or added later')
  const merged = kind === 'replace' ? { ...kept, ...sent } : merge(kept, sent)
  for (const name of fixed) if (merged[name] === null) delete merged[name]
  assertValid(check, merged)
  const others = Object.keys(before).filter((name) => !names.includes(name) && !(name in (form.paths ?? {})))
  return joined(withDefaults(fields, merged), pick(before, others))
}

/** @throws Failure invalid for another value of a field that only operations change */
export const assertGuarded = (
  { guarded = {} }: Pick<ResourceDeclaration, 'guarded'>,
  before: JsonObject,
  body: JsonObject,
): void => {
  for (const [name, sentence] of Object.entries(guarded))
    if (body[name] !== undefined && body[name] !== before[name]) throw invalid(`/${name}`, sentence)
}
