import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'

/** CPU time since then: other load on the machine counts less. */
export const cpuMs = (begun: NodeJS.CpuUsage): number => {
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / 1000
}

/** Memory of the process after a collection. */
export const collected = (): NodeJS.MemoryUsage => {
  setFlagsFromString('--expose-gc')
  const collect = runInNewContext('gc') as () => void
  for (let i = 0; i < 3; i++) collect()
  return process.memoryUsage()
}

/** Bytes held on the heap and in buffers after a collection. */
export const heldBytes = (): number => {
  const { heapUsed, arrayBuffers } = collected()
  return heapUsed + arrayBuffers
}
