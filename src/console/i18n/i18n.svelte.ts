// Texts of the page, by key. English is part of the first view; others are loaded when they are chosen.
import { en, type TextKey, type Texts } from './en.ts'

export const LANGUAGES = { en: 'English', pl: 'Polski', de: 'Deutsch', ar: 'العربية' }
export type Language = keyof typeof LANGUAGES

const LOADERS: { [language in Exclude<Language, 'en'>]: () => Promise<Texts> } = {
  pl: async () => (await import('./pl.ts')).pl,
  de: async () => (await import('./de.ts')).de,
  ar: async () => (await import('./ar.ts')).ar,
}
/** Pause before texts that could not be loaded are asked for again. */
const AGAIN_MS = 5_000
const RIGHT_TO_LEFT = new Set<Language>(['ar'])

class I18n {
  language = $state<Language>('en')
  texts = $state.raw<Texts>(en)
  #wanted: Language = 'en'

  /** Locale of the reader's own region if it has the language, so that dates are written as usual there. */
  get locale(): string {
    return navigator.languages.find((one) => one.slice(0, 2) === this.language) ?? this.language
  }

  async choose(wanted: string): Promise<void> {
    const language = (wanted.slice(0, 2) in LANGUAGES ? wanted.slice(0, 2) : 'en') as Language
    this.#wanted = language
    const texts = language === 'en' ? en : await LOADERS[language]().catch(() => undefined)
    // Another one was chosen meanwhile.
    if (language !== this.#wanted) return
    if (texts === undefined) {
      // The page goes on in the language that it has.
      setTimeout(() => language === this.#wanted && void this.choose(language), AGAIN_MS)
      return
    }
    this.texts = texts
    this.language = language
    document.documentElement.lang = language
    document.documentElement.dir = RIGHT_TO_LEFT.has(language) ? 'rtl' : 'ltr'
  }
}

export const i18n = new I18n()

const RIGHT_TO_LEFT_LETTER = /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/

/** Isolates a name where it or the sentence is right-to-left: it would change places with a name or number beside it. */
export const apart = (text: string): string =>
  RIGHT_TO_LEFT.has(i18n.language) || RIGHT_TO_LEFT_LETTER.test(text) ? `\u2068${text}\u2069` : text

/** Text of a key, with each `{name}` replaced from `values`. */
export const t = (key: TextKey, values: { [name: string]: string | number } = {}): string =>
  i18n.texts[key].replace(/\{(\w+)\}/g, (whole, name: string) => {
    const value = values[name]
    return typeof value === 'string' ? apart(value) : String(value ?? whole)
  })
