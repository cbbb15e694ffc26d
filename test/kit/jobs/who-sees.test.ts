import { test } from 'tap'
import type { UserCaller } from '../../../src/kernel/caller.ts'
import { limitsOf } from '../../../src/kit/http/list-query.ts'
import { JOB_AUDIENCE, seesJob } from '../../../src/kit/jobs/who-sees.ts'

test('a list of jobs has those that may be read, and no others', async (t) => {
  const jobs = ['asker', 'other'].map((userId) => ({ userId }))
  const callers = (['all', [], ['hub']] as const).flatMap((hubIds) => [
    { userId: 'asker', hubIds },
    { userId: 'stranger', hubIds },
  ])
  const read = callers.map((caller) => jobs.filter((job) => seesJob(caller, job)))
  const listed = callers.map((caller) => {
    const limits = limitsOf(caller as unknown as UserCaller, { audience: JOB_AUDIENCE })
    return jobs.filter((job) => limits.every(([field, own]) => field === 'userId' && own.includes(job.userId)))
  })
  t.same(listed, read)
  t.same(
    read.map((seen) => seen.length),
    [2, 2, 1, 0, 1, 0],
  )
})
