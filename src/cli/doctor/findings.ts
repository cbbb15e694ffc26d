export interface Finding {
  /** Part of the installation, such as `machine`, `keys`, `service`, `log`. */
  area: string
  /** Undefined if unknown. */
  ok: boolean | undefined
  what: string
  advice?: string
}

export const isWell = (findings: readonly Finding[]): boolean => findings.every(({ ok }) => ok !== false)

/** One line for each finding, with its advice below. */
export const findingsText = (findings: readonly Finding[]): string =>
  findings
    .map(({ ok, what, advice }) => {
      const mark = ok === undefined ? '?    ' : ok ? 'ok   ' : 'BAD  '
      return `${mark}${what}\n${ok !== true && advice !== undefined ? `     -> ${advice}\n` : ''}`
    })
    .join('')
