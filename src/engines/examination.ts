/** What `waymark doctor` writes to a log and erases; a server may tell of it until it scavenges. */
export const TRIAL_STREAM = 'waymark-doctor'

/** One setting of an engine that decides whether what it acknowledged stays. */
export interface ExaminedSetting {
  name: string
  /** Undefined where the engine does not tell, for lack of a permission for instance. */
  value: string | undefined
  isGood: boolean
  /** What to do where it is not. */
  advice: string
}

/** What an engine reports about itself, for its operator. */
export interface Examination {
  version?: string
  /** Its clock, ms since the epoch. */
  now?: number
  settings: ExaminedSetting[]
}
