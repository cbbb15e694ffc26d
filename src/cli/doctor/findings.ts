/** One thing that was looked at. */
export interface Finding {
  /** Part of the installation, such as `machine`, `keys`, `service`, `log`. */
  area: string
  /** Undefined where it cannot be told. */
  ok: boolean | undefined
  what: string
  /** What to do; for what is not well. */
  advice?: string
}

export const isWell = (findings: readonly Finding[]): boolean => findings.every(({ ok }) => ok !== false)

/** One line for each finding, and below it what to do. */
export const findingsText = (findings: readonly Finding[]): string =>
  findings
    .map(({ ok, what, advice }) => {
      const mark = ok === undefined ? '?    ' : ok ? 'ok   ' : 'BAD  '
      return `${mark}${what}\n${ok !== true && advice !== undefined ? `     -> ${advice}\n` : ''}`
    })
    .join('')
