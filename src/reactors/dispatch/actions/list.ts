import type { Actions } from './action.ts'
import { assignTaskAction, moveTaskAction, updateTaskAction } from './change-task.ts'
import { createTaskAction } from './create-task.ts'
import { notificationAction } from './notification.ts'
import type { NotificationServices } from './notification-channels.ts'
import { webhookAction } from './webhook.ts'
import { sharedReads } from '../shared-reads.ts'
import { writeRecordAction } from './write-record.ts'

/** What automations can do, by `automationType`. */
export const actionsOf = (given: NotificationServices): Actions => {
  const services = { ...given, tables: sharedReads(given.tables) }
  return {
    createTask: createTaskAction(services, false),
    createAndAssignTask: createTaskAction(services, true),
    moveTask: moveTaskAction(services),
    assignTask: assignTaskAction(services),
    updateTask: updateTaskAction(services),
    createOrUpdateDataSource: writeRecordAction(services),
    notification: notificationAction(services),
    webhook: webhookAction(services),
  }
}
