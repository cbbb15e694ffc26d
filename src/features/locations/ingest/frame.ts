import { CLOSE } from '../../../kit/http/channel.ts'
import { readBinaryFrame } from './binary-frame.ts'
import { POINTS_MAX } from './point-schema.ts'
import type { FrameContent } from './store.ts'

export interface Frame {
  /** Undefined: the next number. */
  seq: number | undefined
  content: FrameContent
  /** The frame has unknown content: none of its points is accepted. */
  fault?: string
}

export interface BadFrame {
  close: number
  reason: string
}

/** Reads `{type: "points", seq?, points}`, a bare point, a bare list of points, or a binary frame. */
export const readFrame = (data: ArrayBuffer, isBinary: boolean): Frame | BadFrame =>
  isBinary ? binaryFrame(data) : jsonFrame(data)

const binaryFrame = (data: ArrayBuffer): Frame | BadFrame => {
  const frame = readBinaryFrame(data, POINTS_MAX)
  if (frame === undefined) return { close: CLOSE.badMessage, reason: 'not a valid binary frame' }
  if (!('seq' in frame)) return TOO_MANY
  return { seq: frame.seq === 0 ? undefined : frame.seq, content: frame }
}

const jsonFrame = (data: ArrayBuffer): Frame | BadFrame => {
  let message: unknown
  try {
    message = JSON.parse(Buffer.from(data).toString())
  } catch {
    return { close: CLOSE.badMessage, reason: 'not JSON' }
  }
  if (Array.isArray(message)) return message.length > POINTS_MAX ? TOO_MANY : { seq: undefined, content: message }
  if (typeof message !== 'object' || message === null) return UNKNOWN_TYPE
  if (!('type' in message)) return isLikePoint(message) ? { seq: undefined, content: [message] } : UNKNOWN_TYPE
  return message.type === 'points' ? pointsFrame(message as PointsMessage) : UNKNOWN_TYPE
}

interface PointsMessage {
  type: 'points'
  seq?: unknown
  points?: unknown
}

const TOO_MANY: BadFrame = { close: CLOSE.tooLarge, reason: `a frame takes at most ${POINTS_MAX} points` }
const UNKNOWN_TYPE: BadFrame = { close: CLOSE.badMessage, reason: 'no known type' }

const pointsFrame = (message: PointsMessage): Frame | BadFrame => {
  const { seq, points } = message
  if (!Array.isArray(points)) return { close: CLOSE.badMessage, reason: 'points is not a list' }
  if (points.length > POINTS_MAX) return TOO_MANY
  if (seq !== undefined && !(Number.isSafeInteger(seq) && (seq as number) > 0))
    return { close: CLOSE.badMessage, reason: 'seq is not a number that rises from 1' }
  for (const name in message) {
    if (name !== 'type' && name !== 'seq' && name !== 'points')
      return { seq: seq as number | undefined, content: points, fault: `/${name} is not a known field` }
  }
  return { seq: seq as number | undefined, content: points }
}

/** A bare point has no type; it is recognised by the members that every point must have. */
const isLikePoint = (message: object): boolean => 'lat' in message || 'lng' in message || 'recordedAt' in message
