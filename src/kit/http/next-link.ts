/** The value of the `Link` header that names the next page: the same question with the cursor. `path` is below the root of the server. */
export const nextLink = (path: string, query: { readonly [name: string]: unknown }, cursor: string): string => {
  const parameters = new URLSearchParams()
  for (const [name, value] of Object.entries(query))
    if (name !== 'page' && name !== 'cursor' && value !== undefined)
      for (const one of [value].flat()) parameters.append(name, String(one))
  parameters.set('cursor', cursor)
  return `<${path}?${parameters}>; rel="next"`
}
