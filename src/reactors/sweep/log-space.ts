import type { Services } from '../../kit/services.ts'

/** Makes the log free the space of hidden events, where its engine must be asked to. */
export class LogSpace {
  private readonly services: Pick<Services, 'log' | 'logger'>
  private isForbidden = false

  constructor(services: Pick<Services, 'log' | 'logger'>) {
    this.services = services
  }

  /** Called after a sweep. A log whose user may not do this is reported once, and not asked again. */
  async reclaim(): Promise<void> {
    const { log, logger } = this.services
    if (log.reclaim === undefined || this.isForbidden) return
    try {
      const outcome = await log.reclaim()
      this.isForbidden = outcome === 'forbidden'
      if (outcome === 'begun') logger.info('the log began to free the space of hidden events (a scavenge)')
      if (this.isForbidden)
        logger.warn('the user of --log may not start scavenges: give it the group $ops, or schedule them yourself')
    } catch (error) {
      logger.error('the log could not be asked to free space', { error: String(error) })
    }
  }
}
