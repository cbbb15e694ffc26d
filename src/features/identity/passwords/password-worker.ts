import { parentPort } from 'node:worker_threads'
import { ZxcvbnFactory } from '@zxcvbn-ts/core'
import * as common from '@zxcvbn-ts/language-common'
import * as english from '@zxcvbn-ts/language-en'
import { normalized } from '../../../kernel/text.ts'

export interface StrengthJob {
  password: string
  /** Names and addresses of the person. */
  about: readonly string[]
}

export interface StrengthAnswer {
  /** Absent if the password is strong enough. */
  weakness?: string
}

/** Lowest accepted score: over a million guesses. */
const SCORE_MIN = 2
/** UTF-16 characters scored at once: 40 take 40 ms, and the time grows faster than linearly. */
const PART_CHARS = 40
/** Substitutions tried, such as `@` for `a`; the usual hundred takes ten times as long. */
const SUBSTITUTIONS_MAX = 8
const PERSONAL = 'it is made of your name, your address or your organization.'
const WEAK = 'it is too short, or made of what is often used.'

/** Sentences by the library's names of weaknesses. */
const WEAKNESSES: { readonly [name: string]: string } = {
  straightRow: 'it follows keys that lie side by side.',
  keyPattern: 'it follows keys that lie side by side.',
  simpleRepeat: 'it repeats a character.',
  extendedRepeat: 'it repeats the same characters.',
  sequences: 'it follows a sequence such as abc or 123.',
  recentYears: 'it is little more than a year.',
  dates: 'it is little more than a date.',
  topTen: 'it is one of the ten most used passwords.',
  topHundred: 'it is one of the hundred most used passwords.',
  common: 'it is one of the most used passwords.',
  similarToCommon: 'it is close to one of the most used passwords.',
  wordByItself: 'it is a single word.',
  namesByThemselves: 'it is a name.',
  commonNames: 'it is a name.',
  userInputs: PERSONAL,
}

const { warnings, suggestions } = english.translations
/** With these translations the library returns the names of weaknesses. */
const named = <Texts extends object>(texts: Texts): Texts =>
  Object.fromEntries(Object.keys(texts).map((name) => [name, name])) as Texts

const library = new ZxcvbnFactory({
  dictionary: { ...common.dictionary, ...english.dictionary },
  graphs: common.adjacencyGraphs,
  translations: { ...english.translations, warnings: named(warnings), suggestions: named(suggestions) },
  l33tMaxSubstitutions: SUBSTITUTIONS_MAX,
})

/** The stronger of its beginning and its end determines a password's strength. */
const weaknessOf = ({ password, about }: StrengthJob): string | undefined => {
  const known = wordsOf(about)
  if (isMadeOf(known, squeezed(password))) return PERSONAL
  const parts =
    password.length <= PART_CHARS ? [password] : [password.slice(0, PART_CHARS), password.slice(-PART_CHARS)]
  const results = parts.map((part) => library.check(part, known))
  if (results.some(({ score }) => score >= SCORE_MIN)) return undefined
  return WEAKNESSES[results[0].feedback.warning ?? ''] ?? WEAK
}

/** Whether nothing but such words and a number of few digits, such as a year, is there: three words score well. */
const isMadeOf = (words: readonly string[], text: string): boolean => {
  const longestFirst = [...words].sort((one, other) => other.length - one.length)
  const rest = longestFirst.reduce((left, word) => left.replaceAll(word, ' '), text)
  return rest.includes(' ') && /^\d{0,4}$/.test(rest.replaceAll(' ', ''))
}

/** Each text without non-letters, and its words; also without accents. */
const wordsOf = (about: readonly string[]): string[] => {
  const texts = about.flatMap((text) => [text, normalized(text, 'NFKD').replace(/\p{M}/gu, '')])
  const words = texts.flatMap((text) => [
    text.toLowerCase(),
    squeezed(text),
    ...text.toLowerCase().split(/[^\p{L}\p{N}]+/u),
  ])
  return [...new Set(words.filter((word) => word.length >= 3))]
}

const squeezed = (text: string): string => text.toLowerCase().replace(/[^\p{L}\p{N}]/gu, '')

parentPort?.on('message', (job: StrengthJob) => {
  const weakness = weaknessOf(job)
  parentPort?.postMessage((weakness === undefined ? {} : { weakness }) satisfies StrengthAnswer)
})
