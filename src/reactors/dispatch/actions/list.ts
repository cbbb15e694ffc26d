import type { Actions } from './action.ts'
import { assignTaskAction, moveTaskAction, updateTaskAction } from './change-task.ts'
import { createTaskAction } from './create-task.ts'
import type { InsideServices } from './inside.ts'
import { webhookAction, type WebhookServices } from './webhook.ts'
import { writeRecordAction } from './write-record.ts'

/** What automations can do, by `automationType`. */
export const actionsOf = (services: InsideServices & WebhookServices): Actions => ({
  createTask: createTaskAction(services, false),
  createAndAssignTask: createTaskAction(services, true),
  moveTask: moveTaskAction(services),
  assignTask: assignTaskAction(services),
  updateTask: updateTaskAction(services),
  createOrUpdateDataSource: writeRecordAction(services),
  webhook: webhookAction(services),
})
