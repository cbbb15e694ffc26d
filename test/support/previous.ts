import { join } from 'node:path'

/** An installation of the previous version: `data`, a `backup` of it, and `shown.json`, what its owners were shown. */
export const PREVIOUS = join(import.meta.dirname, '../../../test/fixtures/previous.tar.gz')

/** Flags that it was started with; nothing of it expires. */
export const PREVIOUS_FLAGS = [
  '--partitions',
  '2',
  '--location-history-days',
  '36500',
  '--automation-log-days',
  '36500',
]
