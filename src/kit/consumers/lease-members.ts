import type { Life } from '../operations/life.ts'
import type { Member } from './lease-rows.ts'
import { sharesOf } from './shares.ts'

/** Time between two signs of life, and between two looks at the leases. */
export const LOOK_MS = 250
/** Silence after which a process counts as dead: several signs, since one may be late. */
export const LIFE_MS = 2_000
/** The same for a process whose connections have ended: long enough to reconnect. */
export const GONE_LIFE_MS = 2 * LOOK_MS
/** The longest such time, for a process that pauses now and then; also for versions that give a sign once a second. */
export const LIFE_MS_MAX = 8_000
/** Factor by which the longest known delay of a sign shrinks at each look: half of it is left after 17 seconds. */
const DELAY_KEPT = 0.99

/** A process as this one sees it. */
interface Seen extends Member {
  /** Time during which this process has looked without seeing a sign of life. */
  silentMs: number
}

/**
 * The processes that take part, as one of them sees the others. No clocks are compared: a sign of life is a number that
 * rises. A process whose signs come late says how long the others have to wait for it, so that a busy one is not taken
 * for dead during a pause that it makes more often.
 */
export class LeaseMembers {
  /** Whether others see the connections of this process. */
  isShown = false
  private readonly life: Life
  /** Processes whose connections have ended. */
  private gone: ReadonlySet<string> = new Set()
  private members: ReadonlyMap<string, Seen> = new Map()
  private beat = 0
  private lookedAtMs: number
  private signedAtMs: number
  private delayMs = 0
  /** Hash of each name and process that takes part, for which the shares were computed. */
  private sharedFor: string | undefined
  private shared: ReadonlyMap<string, string> = new Map()

  constructor(life: Life, nowMs: number) {
    this.life = life
    this.lookedAtMs = nowMs
    this.signedAtMs = nowMs
  }

  /** The next sign of life of this process. */
  sign(joins: readonly string[], nowMs: number): Member {
    const delayMs = Math.min(nowMs - this.signedAtMs - LOOK_MS, LIFE_MS_MAX)
    this.delayMs = Math.max(this.delayMs * DELAY_KEPT, delayMs)
    this.signedAtMs = nowMs
    const lifeMs = Math.min(LIFE_MS_MAX, Math.round(LIFE_MS + 2 * this.delayMs))
    return { node: this.life.node, beat: ++this.beat, lifeMs, joins, ...(this.isShown && { isShown: true }) }
  }

  see(members: ReadonlyMap<string, Member>, nowMs: number): void {
    // A process that stood still meanwhile did not look for signs.
    const lookedMs = Math.min(nowMs - this.lookedAtMs, 2 * LOOK_MS)
    this.lookedAtMs = nowMs
    const before = this.members
    this.members = new Map(
      [...members].map(([owner, member]) => {
        const known = before.get(owner)
        return [owner, { ...member, silentMs: known?.beat === member.beat ? known.silentMs + lookedMs : 0 }]
      }),
    )
    this.gone = new Set([...this.gone].filter((owner) => (this.members.get(owner)?.silentMs ?? 0) > 0))
  }

  /** Processes that may be gone, by their silence. */
  silent(): string[] {
    return [...this.members]
      .filter(([owner, { isShown, silentMs }]) => isShown === true && silentMs >= GONE_LIFE_MS && this.lives(owner))
      .map(([owner]) => owner)
  }

  /** Notes which of the silent are connected. A process that does not see even itself there learns nothing. */
  seeConnected(shown: ReadonlySet<string>): void {
    if (shown.has(this.life.id)) this.gone = new Set(this.silent().filter((owner) => !shown.has(owner)))
  }

  /** Whether another process is alive. */
  lives(owner: string): boolean {
    const member = this.members.get(owner)
    if (member === undefined || member.node === this.life.node) return false
    return member.silentMs < (this.gone.has(owner) ? GONE_LIFE_MS : (member.lifeMs ?? LIFE_MS_MAX))
  }

  hasOthers(): boolean {
    return [...this.members.keys()].some((owner) => owner !== this.life.id && this.lives(owner))
  }

  /** The other processes that are dead, and how long each has given no sign. */
  dead(): { owner: string; silentMs: number }[] {
    return [...this.members]
      .filter(([owner]) => owner !== this.life.id && !this.lives(owner))
      .map(([owner, { silentMs }]) => ({ owner, silentMs }))
  }

  /** Rightful owner of each part, by name. */
  shares(joins: readonly string[]): ReadonlyMap<string, string> {
    const others = [...this.members].filter(([owner]) => owner !== this.life.id && this.lives(owner))
    const all = new Map([...others.map(([owner, member]) => [owner, member.joins] as const), [this.life.id, joins]])
    const sharedFor = [...all].map(([owner, names]) => `${owner} ${names.join()}`).join('\n')
    if (sharedFor !== this.sharedFor) this.shared = sharesOf(all)
    this.sharedFor = sharedFor
    return this.shared
  }
}
