import type { DevicePoint } from './point.ts'

/** Messages of a device on a connection, in the order in which they have to be answered. */
export type Said =
  /** The device's name. `refused` is the answer to an unknown device, where the protocol has one. */
  | { kind: 'login'; name: string; accepted?: Buffer; refused?: Buffer }
  /** Points; `answer` goes out once they are durable. A protocol that names the device in each message sets `name`. */
  | { kind: 'points'; points: DevicePoint[]; name?: string; answer?: Buffer }
  | { kind: 'answer'; answer: Buffer }

/** The bytes of one connection. `now`, in ms since the epoch, is for protocols that tell the device the time. */
export interface DeviceStream {
  /** Adds what the bytes say to `said`, which has it also when other bytes follow. @throws NotThisProtocol */
  push(chunk: Uint8Array, now: number, said?: Said[]): Said[]
}

/** A protocol over TCP, and over UDP where it has datagrams. */
export interface StreamProtocol {
  open(): DeviceStream
  /** @throws NotThisProtocol */
  readDatagram?(datagram: Buffer, now: number): Said[]
}

/** What a datagram says; what stands before other bytes is said all the same. @throws NotThisProtocol if nothing does */
export const datagramSaid = (stream: DeviceStream, datagram: Buffer, now: number): Said[] => {
  const said: Said[] = []
  try {
    return stream.push(datagram, now, said)
  } catch (error) {
    if (!(error instanceof NotThisProtocol) || said.length === 0) throw error
    return said
  }
}

/** Protocols of hardware, by the name that `--devices` takes. */
export const DEVICE_PROTOCOLS = ['teltonika', 'gt06', 'h02', 'queclink', 'tk103'] as const
export type DeviceProtocol = (typeof DEVICE_PROTOCOLS)[number]

/** The input is not the protocol of the port: the connection is closed. */
export class NotThisProtocol extends Error {}

/** Far above the length of any message of these protocols. */
export const FRAME_BYTES_MAX = 64 * 1024
