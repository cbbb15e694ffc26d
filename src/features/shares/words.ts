export interface Words {
  direction: 'ltr' | 'rtl'
  states: { readonly [state: string]: string }
  window: string
  arrival: string
  distance: string
  /** Precedes a number. */
  stopsBefore: string
  seen: string
  noPosition: string
  refreshes: string
  ended: string
  endedText: string
  busy: string
  map: string
}

const en: Words = {
  direction: 'ltr',
  states: { new: 'Planned', assigned: 'Planned', inProgress: 'On the way', finished: 'Done', cancelled: 'Cancelled' },
  window: 'Expected between',
  arrival: 'Arrival at about',
  distance: 'Distance',
  stopsBefore: 'Stops before',
  seen: 'Last seen',
  noPosition: 'There is no position at the moment.',
  refreshes: 'This page updates itself.',
  ended: 'This link has ended',
  endedText: 'It is not valid any more, or never was. Ask the sender for another one.',
  busy: 'Too many links that lead nowhere were tried from your network. Try again later.',
  map: 'Where it is, and where it goes',
}

const pl: Words = {
  direction: 'ltr',
  states: {
    new: 'Zaplanowane',
    assigned: 'Zaplanowane',
    inProgress: 'W drodze',
    finished: 'Zakończone',
    cancelled: 'Anulowane',
  },
  window: 'Spodziewane między',
  arrival: 'Przybycie około',
  distance: 'Odległość',
  stopsBefore: 'Przystanki przed',
  seen: 'Ostatnia pozycja',
  noPosition: 'W tej chwili nie ma pozycji.',
  refreshes: 'Strona odświeża się sama.',
  ended: 'Ten odnośnik wygasł',
  endedText: 'Nie jest już ważny albo nigdy nie był. Poproś nadawcę o nowy.',
  busy: 'Z Twojej sieci wypróbowano zbyt wiele nieważnych odnośników. Spróbuj później.',
  map: 'Obecne położenie i cel',
}

const de: Words = {
  direction: 'ltr',
  states: { new: 'Geplant', assigned: 'Geplant', inProgress: 'Unterwegs', finished: 'Erledigt', cancelled: 'Abgesagt' },
  window: 'Erwartet zwischen',
  arrival: 'Ankunft gegen',
  distance: 'Entfernung',
  stopsBefore: 'Stopps davor',
  seen: 'Zuletzt gesehen',
  noPosition: 'Im Moment gibt es keine Position.',
  refreshes: 'Diese Seite aktualisiert sich von selbst.',
  ended: 'Dieser Link ist abgelaufen',
  endedText: 'Er gilt nicht mehr oder hat nie gegolten. Bitten Sie den Absender um einen neuen.',
  busy: 'Aus Ihrem Netz wurden zu viele ungültige Links versucht. Versuchen Sie es später wieder.',
  map: 'Standort und Ziel',
}

const ar: Words = {
  direction: 'rtl',
  states: { new: 'مُخطَّط', assigned: 'مُخطَّط', inProgress: 'في الطريق', finished: 'تم', cancelled: 'أُلغي' },
  window: 'متوقع بين',
  arrival: 'الوصول نحو',
  distance: 'المسافة',
  stopsBefore: 'محطات قبله',
  seen: 'آخر ظهور',
  noPosition: 'لا يوجد موقع حاليًا.',
  refreshes: 'تُحدَّث هذه الصفحة تلقائيًا.',
  ended: 'انتهت صلاحية هذا الرابط',
  endedText: 'لم يعد صالحًا أو لم يكن كذلك قط. اطلب رابطًا جديدًا ممن أرسله إليك.',
  busy: 'جُرِّبت روابط كثيرة غير صالحة من شبكتك. حاول لاحقًا.',
  map: 'الموقع الحالي والوجهة',
}

const LANGUAGES: { readonly [language: string]: Words } = { en, pl, de, ar }

const TAGS_MAX = 20

/** First available language of `Accept-Language`, otherwise that of the organization, otherwise English. */
export const languageOf = (accepted: string | undefined, organization: string | undefined): string => {
  const tags = (accepted ?? '').slice(0, 1_000).split(',').slice(0, TAGS_MAX).map(ranked)
  const wanted = tags.sort((one, other) => other.rank - one.rank).filter(({ rank }) => rank > 0)
  const known = [...wanted.map(({ tag }) => tag), organization ?? ''].map((tag) => tag.toLowerCase().split('-')[0])
  return known.find((tag) => Object.hasOwn(LANGUAGES, tag)) ?? 'en'
}

const ranked = (part: string): { tag: string; rank: number } => {
  const [tag, ...parameters] = part.split(';').map((one) => one.trim())
  const quality = parameters.find((one) => one.startsWith('q='))
  return { tag, rank: quality === undefined ? 1 : Number(quality.slice(2)) || 0 }
}

export const wordsIn = (language: string): Words => LANGUAGES[language] ?? en
