import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { HttpPlan, HttpResult } from './http-generator.ts'

const scriptOf = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url))

/** Sends requests from a process of its own until the plan has ended. */
export const driveHttp = async (plan: HttpPlan): Promise<HttpResult> => {
  const child = spawn(process.execPath, [scriptOf('http-generator'), JSON.stringify(plan)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  let text = ''
  child.stdout.on('data', (chunk) => (text += chunk))
  const code = await new Promise<number | null>((done) => child.once('exit', done))
  if (code !== 0) throw new Error(`the generator ended with ${code}`)
  return JSON.parse(text) as HttpResult
}

/** A bare handler of uWebSockets.js, the ceiling of the generator. */
export const startBare = async (): Promise<{ port: number; child: ChildProcess }> => {
  const child = spawn(process.execPath, [scriptOf('bare-handler')], { stdio: ['ignore', 'pipe', 'inherit'] })
  const port = await new Promise<number>((found) => child.stdout.once('data', (text) => found(Number(String(text)))))
  return { port, child }
}
