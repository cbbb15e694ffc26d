import { Failure } from '../../kernel/errors.ts'
import { idFrom } from '../../kit/commands/ids.ts'
import type { ResourceServices } from '../../kit/resource/declaration.ts'
import type { WriteOrigin } from '../../kit/resource/writes.ts'
import { share } from './share.ts'
import { followUrl, makeShareToken } from './views.ts'

/**
 * Link for following the task of an automation's run: the same at each attempt, since share and token derive from the
 * run. Undefined for a task that has been over for too long.
 * @param origin of the automation: its editor may share tasks
 * @throws Failure quota
 */
export const linkOfRun = async (
  services: ResourceServices & { publicUrl: string },
  origin: WriteOrigin,
  taskId: string,
  runId: string,
): Promise<string | undefined> => {
  const shareId = idFrom('share', runId)
  const seed = idFrom('share-token', runId)
  const { token } = makeShareToken(services.keyring, seed)
  const writer = share.writer(services)
  const { state } = await writer.load(shareId)
  try {
    // A share deleted since is not created again: its link has ended.
    if (state.status === 'absent') await writer.create(seeded(origin, seed), { _id: shareId, taskId })
  } catch (error) {
    if (error instanceof Failure && error.code === 'conflict') return undefined
    throw error
  }
  return followUrl(services.publicUrl, token)
}

/** The writer derives the secret that is shown once from the id that it draws. */
const seeded = (origin: WriteOrigin, seed: string): WriteOrigin => ({ ...origin, ids: { next: () => seed } })
