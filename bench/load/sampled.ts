export interface Percentiles {
  p50: number
  p95: number
  p99: number
  max: number
}

/** Maximum of kept values, each one out of the same number of values: an hour's run would not fit memory. */
const SAMPLES_MAX = 1_000_000

/** Values whose percentiles are reported. */
export class Sampled {
  private values: number[] = []
  private every = 1
  private passed = 0

  add(value: number): void {
    if (this.passed++ % this.every !== 0) return
    this.values.push(value)
    if (this.values.length < SAMPLES_MAX) return
    this.values = this.values.filter((_, i) => i % 2 === 0)
    this.every *= 2
  }

  percentiles(): Percentiles {
    const sorted = Float64Array.from(this.values).sort()
    const at = (share: number): number =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN
    return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
  }
}
