/**
 * What processes tell each other at once, by topic. Nothing is promised but speed: whatever is told may be lost, come
 * twice, late, or in another order. So it only saves a hearer from asking for what it finds elsewhere too.
 */
export interface Broadcast {
  /** Tells the other processes that hear the topic, where there are any. What cannot be sent soon is left out. */
  tell(topic: string, bytes: Uint8Array): void
  /** Calls the listener, one for each topic, with what other processes tell. Answers what ends it. */
  hear(topic: string, listener: (bytes: Uint8Array) => void): () => void
}
