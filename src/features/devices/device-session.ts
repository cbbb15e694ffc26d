import type { DevicePoint } from '../../devices/point.ts'
import { type DeviceStream, NotThisProtocol, type Said } from '../../devices/stream.ts'
import type { IngestKeyCaller } from '../../kernel/caller.ts'
import type { Clock } from '../../kernel/clock.ts'
import { Failure } from '../../kernel/errors.ts'
import type { Logger } from '../../kernel/logger.ts'
import type { DevicePoints } from './device-points.ts'
import type { UnknownDevices } from './unknown-devices.ts'

export interface SessionOptions {
  protocol: string
  points: DevicePoints
  /** Caller for devices: looked up for each message, so that a key stops working as soon as it ends. @throws Failure */
  caller(): Promise<IngestKeyCaller>
  /** Code that refuses points of that name; undefined if their tracker exists or was created. @throws Failure */
  admits(caller: IngestKeyCaller, name: string): Promise<string | undefined>
  unknown: UnknownDevices
  clock: Clock
  logger: Logger
}

/** One step of a connection; `end`: what follows is not the protocol. */
export type Step = Said | { kind: 'end' }

/** Action after a step. */
export type Outcome = { answer?: Buffer; ends?: true; login?: true }

/** One connected device: its messages in order, and the answers once they are durable. */
export class DeviceSession {
  private readonly options: SessionOptions
  private readonly stream: DeviceStream
  private name: string | undefined

  constructor(options: SessionOptions, stream: DeviceStream) {
    this.options = options
    this.stream = stream
  }

  /** @throws NotThisProtocol when nothing was said before */
  read(chunk: Uint8Array): Step[] {
    const said: Said[] = []
    try {
      this.stream.push(chunk, this.options.clock.now(), said)
    } catch (error) {
      if (!(error instanceof NotThisProtocol) || said.length === 0) throw error
      // How the network cuts the bytes decides nothing.
      return [...joined(said), { kind: 'end' }]
    }
    return joined(said)
  }

  /** Without an answer nothing was stored: the device keeps the points and resends them. */
  async handle(said: Step): Promise<Outcome> {
    if (said.kind === 'answer') return { answer: said.answer }
    if (said.kind === 'end') return { ends: true }
    try {
      return said.kind === 'login' ? await this.login(said) : await this.store(said)
    } catch (error) {
      if (!(error instanceof Failure)) throw error
      this.options.logger.debug('a device has to send again', { protocol: this.options.protocol, code: error.code })
      return { ends: true }
    }
  }

  private async login({ name, accepted, refused }: Said & { kind: 'login' }): Promise<Outcome> {
    const caller = await this.options.caller()
    const code = await this.options.admits(caller, name)
    if (code === undefined) {
      this.name = name
      return { answer: accepted, login: true }
    }
    this.options.unknown.note(this.options.protocol, name, code)
    return { answer: refused, ends: true }
  }

  private async store({ points, name = this.name, answer }: Said & { kind: 'points' }): Promise<Outcome> {
    // A device that has not logged in has no points.
    if (name === undefined) return { ends: true }
    const caller = await this.options.caller()
    try {
      await this.options.points.take(caller, { points, name })
    } catch (error) {
      if (error instanceof Failure && NAMED.includes(error.code))
        this.options.unknown.note(this.options.protocol, name, error.code)
      throw error
    }
    this.name = name
    return { answer, login: true }
  }
}

const NAMED: readonly string[] = ['unknown_tracker', 'forbidden_tracker', 'tracker_limit']

/** Points of one device that follow each other wait for one append, then all their answers go out. */
const joined = (said: readonly Said[]): Said[] => {
  const found: Said[] = []
  let run: { points: DevicePoint[]; answers: Buffer[]; name: string | undefined } | undefined
  const end = (): void => {
    if (run !== undefined) found.push({ kind: 'points', ...run, answer: Buffer.concat(run.answers) })
    run = undefined
  }
  for (const one of said) {
    if (one.kind !== 'points' || run?.name !== one.name) end()
    if (one.kind !== 'points') {
      found.push(one)
      continue
    }
    run ??= { points: [], answers: [], name: one.name }
    for (const point of one.points) run.points.push(point)
    if (one.answer !== undefined) run.answers.push(one.answer)
  }
  end()
  return found
}
