import { FLAGS, variableOf } from '../config.ts'

/** The table of flags in docs/operations.md. */
export const flagsTable = (): string => {
  const rows = FLAGS.map(
    (flag) =>
      `| \`--${flag.name}\` | \`${variableOf(flag.name)}\` | ${flag.default === '' ? 'none' : `\`${flag.default}\``} | ${flag.meaning} |`,
  )
  return `| Flag | Variable | Default | Meaning |\n| - | - | - | - |\n${rows.join('\n')}\n`
}
