import { test } from 'tap'
import { seenJobs, seesJob } from '../../../src/kit/jobs/who-sees.ts'

test('a list of jobs has those that may be read, and no others', async (t) => {
  const jobs = ['asker', 'other'].map((userId) => ({ userId }))
  const callers = (['all', [], ['hub']] as const).flatMap((hubIds) => [
    { userId: 'asker', hubIds },
    { userId: 'stranger', hubIds },
  ])
  const read = callers.map((caller) => jobs.filter((job) => seesJob(caller, job)))
  const listed = callers.map((caller) => {
    const { userId } = seenJobs(caller)
    return jobs.filter((job) => userId === undefined || job.userId === userId)
  })
  t.same(listed, read)
  t.same(
    read.map((seen) => seen.length),
    [2, 2, 1, 0, 1, 0],
  )
})
