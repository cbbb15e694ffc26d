import type { Feature } from '../../feature.ts'
import { ownedPart } from '../../kit/consumers/owners.ts'
import { assignTaskAction, moveTaskAction, updateTaskAction } from '../../reactors/dispatch/actions/change-task.ts'
import { createTaskAction } from '../../reactors/dispatch/actions/create-task.ts'
import { sampleWork } from '../../reactors/samples/sample-work.ts'
import { SCHEDULED_TASKS, ScheduledTasks } from '../../reactors/schedules/make-tasks.ts'
import { taskRoutes } from './api.ts'
import { TASK_EVENTS, taskFeed } from './live-feed.ts'
import { scheduleRoutes } from './schedule-api.ts'
import { schedule } from './schedule.ts'
import { taskFiles } from './task-files.ts'
import { TaskWriter } from './task-writer.ts'
import { task } from './task.ts'

export const tasks: Feature = {
  resources: [task, schedule],
  routes: (services) => [...scheduleRoutes(services), ...taskRoutes(services)],
  attachments: (services) => taskFiles(services, new TaskWriter(services)),
  jobs: (services) => [ownedPart(SCHEDULED_TASKS, async () => new ScheduledTasks(services).start())],
  samples: sampleWork,
  actions: (services) => ({
    createTask: createTaskAction(services, false),
    createAndAssignTask: createTaskAction(services, true),
    moveTask: moveTaskAction(services),
    assignTask: assignTaskAction(services),
    updateTask: updateTaskAction(services),
  }),
  liveEvents: TASK_EVENTS,
  live: taskFeed,
}
