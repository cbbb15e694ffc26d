import { startCommand } from '../../src/cli/start.ts'
import { readConfig } from '../../src/config.ts'
import { Idempotency } from '../../src/kit/http/idempotency.ts'

/*
 * The service as a client sees it that is killed before it keeps the answer of any request, each time: what it did is in
 * the log, and whoever repeats the request under its Idempotency-Key has it run again. Back-tests over more than five points
 * are jobs. Begins with `start`, as the command does.
 */

const { begin } = Idempotency.prototype
Idempotency.prototype.begin = async function (request) {
  const begun = await begin.call(this, request)
  return 'done' in begun ? { ...begun, done: () => begun.open() } : begun
}

process.exitCode = await startCommand(readConfig(process.argv.slice(3)), { backtestPointsMax: 5 })
