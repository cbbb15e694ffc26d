import { ask } from '../api/client.ts'

/** Saves the answer of a path: links carry no token, so the page fetches it. */
export const download = async (path: string, name: string): Promise<void> =>
  saveAs(await (await ask('GET', path)).blob(), name)

export const saveAs = (blob: Blob, name: string): void => {
  const url = URL.createObjectURL(blob)
  const link = Object.assign(document.createElement('a'), { href: url, download: name })
  document.body.append(link)
  link.click()
  link.remove()
  setTimeout(() => URL.revokeObjectURL(url), 60_000)
}
