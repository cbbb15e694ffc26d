/** In the order of their names, where 9 comes before 10. */
export const byName = <Named extends { name: string }>(rows: readonly Named[]): Named[] => {
  const { compare } = new Intl.Collator(undefined, { numeric: true })
  return rows.toSorted((a, b) => compare(a.name, b.name))
}
