/** Stream that `waymark doctor` writes to a log and erases; a server may list it until it scavenges. */
export const TRIAL_STREAM = 'waymark-doctor'

/** One setting of an engine that decides whether acknowledged data stays. */
export interface ExaminedSetting {
  name: string
  /** Undefined where the engine does not tell, for lack of a permission for instance. */
  value: string | undefined
  isGood: boolean
  /** Advice where it is not good. */
  advice: string
}

/** Report of an engine about itself, for its operator. */
export interface Examination {
  version?: string
  /** Its clock, ms since the epoch. */
  now?: number
  settings: ExaminedSetting[]
}
