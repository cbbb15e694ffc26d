import { en } from './en.ts'

export const pl = en
