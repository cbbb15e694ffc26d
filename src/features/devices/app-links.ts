/** Ways to connect an app to the service: type, follow or scan. */
export interface AppLink {
  /** Address that the app sends to, or the template that the app completes. */
  url: string
  /** Opens the app with all settings filled in. */
  link: string
  qr: string
}

export interface Connection {
  publicUrl: string
  key: string
  /** Name that the app sends; the key determines the tracker anyway. */
  name: string
}

export const APP_LINKS = {
  owntracks: ({ publicUrl, key, name }: Connection): AppLink => {
    const configuration = {
      _type: 'configuration',
      mode: 3,
      url: `${publicUrl}/in/owntracks`,
      auth: true,
      username: 'waymark',
      password: key,
      deviceId: name,
      tid: initialsOf(name),
    }
    const inline = Buffer.from(JSON.stringify(configuration)).toString('base64')
    const link = `owntracks:///config?inline=${encodeURIComponent(inline)}`
    return { url: `${publicUrl}/in/owntracks/${key}`, link, qr: link }
  },
  traccar: ({ publicUrl, key, name }: Connection): AppLink => {
    const url = `${publicUrl}/in/traccar/${key}`
    const link = `${url}?id=${encodeURIComponent(name)}&interval=10`
    return { url, link, qr: link }
  },
  osmand: ({ publicUrl, key }: Connection): AppLink =>
    sameOf(`${publicUrl}/in/osmand/${key}?lat={0}&lon={1}&timestamp={2}&hdop={3}&altitude={4}&speed={5}&bearing={6}`),
  gpslogger: ({ publicUrl, key }: Connection): AppLink =>
    sameOf(
      `${publicUrl}/in/osmand/${key}?lat=%LAT&lon=%LON&timestamp=%TIMESTAMP&speed=%SPD&bearing=%DIR&altitude=%ALT&accuracy=%ACC&batt=%BATT`,
    ),
  overland: ({ publicUrl, key, name }: Connection): AppLink => {
    const url = `${publicUrl}/in/overland`
    const settings = new URLSearchParams({ url, token: key, device_id: name })
    const link = `overland://setup?${settings.toString().replaceAll('+', '%20')}`
    return { url, link, qr: link }
  },
}

export type App = keyof typeof APP_LINKS
export const APPS = Object.keys(APP_LINKS) as App[]

const sameOf = (url: string): AppLink => ({ url, link: url, qr: url })

/** The two letters that OwnTracks shows on its map. */
const initialsOf = (name: string): string => {
  const words = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean)
  const letters = words.length > 1 ? words.map((word) => [...word][0]) : [...(words[0] ?? 'W')]
  return letters.slice(0, 2).join('').toUpperCase()
}
