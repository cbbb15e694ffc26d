import type { Alarm } from '../attributes.ts'
import type { Attributes } from '../point.ts'

/** Bits that are cleared during a fault, the most important first. */
const ALARM_BITS: readonly [bit: number, alarm: Alarm][] = [
  [0, 'vibration'],
  [1, 'sos'],
  [18, 'sos'],
  [2, 'overspeed'],
  [19, 'powerCut'],
]

/** The 32 bits of state at the end of messages. */
export const stateOf = (state: number): Attributes => ({
  ignition: isSet(state, 10),
  alarm: ALARM_BITS.find(([bit]) => !isSet(state, bit))?.[1],
})

const isSet = (state: number, bit: number): boolean => ((state >>> bit) & 1) === 1
