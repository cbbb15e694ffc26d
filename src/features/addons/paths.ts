/** Key prefix of all add-on files in the file store. */
export const ADDON_FILES = 'addons/'

/** The document in which an add-on runs; no file has this name. */
export const FRAME = 'index.html'

/** `hash` is the hexadecimal hash of the content, so a changed file gets another path. */
export const hashedName = (hash: string, name: string): string => `${hash}.${name}`

export const addonKey = (addonId: string, hashed: string): string => `${ADDON_FILES}${addonId}/${hashed}`

export const addonPath = (addonId: string, name: string): string => `/api/v3/addon/${addonId}/files/${name}`
