import { randomUUID } from 'node:crypto'
import { join } from 'node:path'
import type { Test } from 'tap'
import { openFileMailer } from '../../src/engines/file-mailer/file-mailer.ts'
import { sendMails } from '../../src/reactors/mail/send-mails.ts'
import { folderOf } from './folder-of.ts'
import type { openIdentity } from './open-identity.ts'
import { mailsIn, type ReadMail, tokenIn } from './read-mail.ts'
import { until } from './service.ts'

/** Sends what the service owes into a folder, and answers it. */
export const openMailbox = async (t: Test, world: Awaited<ReturnType<typeof openIdentity>>) => {
  const path = join(folderOf(t), 'mail')
  const mailer = await openFileMailer({ path, from: 'waymark@localhost' })
  const mails = await sendMails({ ...world, mailer, publicUrl: 'https://map.example.com' })
  t.teardown(() => mails.close())
  const read = new Set<string>()
  /** The next mail to that address that was not answered before. */
  const next = async (to: string): Promise<ReadMail> => {
    let found: ReadMail | undefined
    await until(`a mail to ${to}`, () => {
      found = mailsIn(path).find(
        ({ headers }) => headers.to.toLowerCase() === to.toLowerCase() && !read.has(headers['message-id']),
      )
      return found !== undefined
    })
    read.add((found as ReadMail).headers['message-id'])
    return found as ReadMail
  }
  return {
    next,
    /** The secret of the link of the next mail. */
    token: async (to: string): Promise<string> => tokenIn(await next(to)),
    /** What was not asked for, once all that was owed until now is sent. */
    rest: async (): Promise<string[]> => {
      const { log, tables } = world
      const mark = { id: randomUUID(), type: 'mark', data: Buffer.from('{}'), isJson: true, metadata: {} }
      const { position } = await log.append('forgotten-mark', [mark], 'any')
      await until('mails to follow', () => (mails.follower.at ?? -1) >= position)
      await until(
        'mails to be sent',
        async () => (await tables.find('owed-mails', '-', { limit: 1 })).rows.length === 0,
      )
      return mailsIn(path)
        .filter(({ headers }) => !read.has(headers['message-id']))
        .map(({ headers }) => `${headers.to}: ${headers.subject}`)
    },
  }
}
