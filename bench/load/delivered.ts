import { type Percentiles, Sampled } from './sampled.ts'

export interface DeliveredFigures {
  positionsPerSecond: number
  messagesPerSecond: number
  megabytesPerSecond: number
}

const TIME_NAME = '"recordedAt":"'
const TIME_LENGTH = '2026-01-01T00:00:00.000Z'.length
/** The delay of one in this many positions is reported: looking at each costs the generator more than the service. */
const DELAY_EVERY = 7

/** Positions that viewers got, and the delay since they were recorded. */
export class Delivered {
  private readonly delays = new Sampled()
  private positions = 0
  private messages = 0
  private bytes = 0

  add(text: string): void {
    const now = Date.now()
    this.messages++
    this.bytes += text.length
    for (let at = text.indexOf(TIME_NAME); at >= 0; at = text.indexOf(TIME_NAME, at + TIME_NAME.length)) {
      if (this.positions++ % DELAY_EVERY !== 0) continue
      const from = at + TIME_NAME.length
      this.delays.add(now - Date.parse(text.slice(from, from + TIME_LENGTH)))
    }
  }

  told(seconds: number): { liveMs: Percentiles; live: DeliveredFigures } {
    return {
      liveMs: this.delays.percentiles(),
      live: {
        positionsPerSecond: this.positions / seconds,
        messagesPerSecond: this.messages / seconds,
        megabytesPerSecond: this.bytes / seconds / 1e6,
      },
    }
  }
}
