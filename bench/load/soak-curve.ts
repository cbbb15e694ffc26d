/** Columns of a soak's samples, in the order of its CSV file. */
export const COLUMNS = [
  'seconds',
  'rssMb',
  'anonMb',
  'fileMb',
  'heapMb',
  'heapTotalMb',
  'externalMb',
  'acceptedPoints',
  'handles',
  'threads',
] as const
export type Sample = { [column in (typeof COLUMNS)[number]]: number }

export const readSamples = (csv: string): Sample[] =>
  csv
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => Object.fromEntries(line.split(',').map((cell, i) => [COLUMNS[i], Number(cell)])) as Sample)

/** The medians of each interval of minutes, and the least heap, which is nearest to its size after a collection. */
export const tableOf = (samples: readonly Sample[], everyMinutes: number): string[][] => {
  const rows = [
    [
      'minutes',
      'points/s',
      'resident, MB',
      'mapped files, MB',
      'without files, MB',
      'heap, least, MB',
      'open files and sockets',
      'threads',
    ],
  ]
  const last = (samples.at(-1)?.seconds ?? 0) / 60
  for (let from = 0; from < last; from += everyMinutes) {
    const part = samples.filter(({ seconds }) => seconds >= from * 60 && seconds < (from + everyMinutes) * 60)
    if (part.length < 2) continue
    const [first, end] = [part[0], part[part.length - 1]]
    const rate = (end.acceptedPoints - first.acceptedPoints) / (end.seconds - first.seconds)
    const median = (column: keyof Sample): string =>
      thousands(part.map((sample) => sample[column]).sort((a, b) => a - b)[Math.floor(part.length / 2)])
    rows.push([
      `${from} to ${from + everyMinutes}`,
      thousands(Math.round(rate / 100) * 100),
      median('rssMb'),
      median('fileMb'),
      median('anonMb'),
      thousands(Math.min(...part.map(({ heapMb }) => heapMb))),
      median('handles'),
      median('threads'),
    ])
  }
  return rows
}

const thousands = (value: number): string => value.toLocaleString('en')

/** Units a minute by which a column rises from a minute on: the slope of a line through its samples. */
export const slopeOf = (samples: readonly Sample[], column: keyof Sample, fromMinute: number): number => {
  const part = samples.filter(({ seconds }) => seconds >= fromMinute * 60)
  const mean = (values: number[]): number => values.reduce((all, one) => all + one, 0) / values.length
  const times = part.map(({ seconds }) => seconds / 60)
  const values = part.map((sample) => sample[column])
  const [time, value] = [mean(times), mean(values)]
  const above = times.reduce((all, one, i) => all + (one - time) * (values[i] - value), 0)
  return above / times.reduce((all, one) => all + (one - time) ** 2, 0)
}

const WIDTH = 760
const HEIGHT = 300
const LEFT = 66
const BOTTOM = 28
const TOP = 12
const LINES: [column: keyof Sample, name: string, color: string][] = [
  ['rssMb', 'resident', '#7a7a7a'],
  ['fileMb', 'mapped files', '#3b7dd8'],
  ['anonMb', 'without files', '#d8473b'],
  ['heapMb', 'JavaScript heap', '#2f9e57'],
]

/** Memory over time as a picture. */
export const drawn = (samples: readonly Sample[]): string => {
  const minutes = Math.ceil((samples.at(-1)?.seconds ?? 60) / 60)
  const top = Math.ceil(Math.max(...samples.map(({ rssMb }) => rssMb)) / 1_000) * 1_000
  const x = (seconds: number): number => LEFT + (seconds / 60 / minutes) * (WIDTH - LEFT - 8)
  const y = (mb: number): number => TOP + (1 - mb / top) * (HEIGHT - TOP - BOTTOM)
  const text = (at: [number, number], anchor: string, words: string, color = '#555'): string =>
    `<text x="${at[0].toFixed(1)}" y="${at[1].toFixed(1)}" text-anchor="${anchor}" fill="${color}">${words}</text>`
  const parts: string[] = []
  for (let mb = 0; mb <= top; mb += 1_000) {
    parts.push(`<path d="M${LEFT} ${y(mb).toFixed(1)}H${WIDTH - 8}" stroke="#ddd"/>`)
    parts.push(text([LEFT - 6, y(mb) + 4], 'end', `${mb.toLocaleString('en')} MB`))
  }
  for (let minute = 0; minute <= minutes; minute += 10)
    parts.push(text([x(minute * 60), HEIGHT - 8], 'middle', `${minute} min`))
  for (const [i, [column, name, color]] of LINES.entries()) {
    const points = samples.map((sample) => `${x(sample.seconds).toFixed(1)},${y(sample[column]).toFixed(1)}`)
    parts.push(`<polyline points="${points.join(' ')}" fill="none" stroke="${color}" stroke-width="1.2"/>`)
    parts.push(text([LEFT + 12 + i * 130, TOP + 10], 'start', name, color))
  }
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="sans-serif" font-size="11"><rect width="100%" height="100%" fill="#fff"/>${parts.join('')}</svg>\n`
}
