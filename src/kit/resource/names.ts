import type { JsonObject } from '../../kernel/json.ts'
import { type ResourceDeclaration, writeOnlyOf } from './declaration.ts'

export const pathsOf = ({ noun, plural, paths }: ResourceDeclaration): { one: string; many: string } =>
  paths ?? { one: `/${noun}`, many: `/${plural}` }

export const idParameter = ({ noun }: ResourceDeclaration): string => `${noun}Id`

export const capital = (name: string): string => name[0].toUpperCase() + name.slice(1)

export const words = (name: string): string => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`)

export const article = (noun: string): string => `${/^[aeio]/.test(noun) ? 'an' : 'a'} ${words(noun)}`

const EXAMPLE_ID = '0190f3a2-7c1e-7d4b-9a55-1f2e3d4c5b6a'

/** What the documentation shows for a row. */
export const exampleRow = (declaration: ResourceDeclaration): JsonObject => ({
  ...Object.fromEntries(
    Object.entries(declaration.example).filter(([name]) => !writeOnlyOf(declaration).includes(name)),
  ),
  _id: EXAMPLE_ID,
  organizationId: '0190f3a2-7c00-7a11-8b22-aabbccddeeff',
  version: 1,
  createdAt: '2026-01-01T08:00:00.000Z',
  updatedAt: '2026-01-01T08:00:00.000Z',
})
