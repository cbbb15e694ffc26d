import { access, constants, open, rename } from 'node:fs/promises'
import { join } from 'node:path'
import { isRecipient } from '../../kernel/recipient.ts'
import { makeFolder } from '../make-folder.ts'
import type { Mail, Mailer, MailOutcome } from '../mailer.ts'

/** Writes each mail as an `.eml` file, for any mail program. Only the owner may read the folder: links are secrets. */
export const openFileMailer = async ({ path, from }: { path: string; from: string }): Promise<Mailer> => {
  makeFolder(path, 0o700)
  const sending = new Set<Promise<MailOutcome>>()
  const write = async ({ id, to, subject, text, html, at }: Mail): Promise<MailOutcome> => {
    if (!isRecipient(to)) return { kind: 'refused', error: 'the recipient is no public mail address' }
    try {
      const alternatives = [part('text/plain', text), part('text/html', html)]
      const composed = { from, to, subject, alternatives, messageId: `<${id}@waymark>`, date: new Date(at) }
      const { message } = await (await openComposer()).sendMail(composed)
      await writeWhole(path, `${new Date(at).toISOString().replaceAll(':', '')}-${id}.eml`, message as Buffer)
      return { kind: 'sent' }
    } catch (error) {
      return { kind: 'failed', error: `the file could not be written: ${(error as NodeJS.ErrnoException).code}` }
    }
  }
  return {
    send: (mail) => {
      const outcome = write(mail)
      sending.add(outcome)
      void outcome.then(() => sending.delete(outcome))
      return outcome
    },
    check: async () => {
      makeFolder(path, 0o700)
      await access(path, constants.W_OK)
    },
    close: async () => void (await Promise.all(sending)),
  }
}

/** The library is loaded with the first mail, which nobody waits for. */
const openComposer = async () => {
  const { createTransport } = await import('nodemailer')
  return createTransport({ streamTransport: true, buffer: true, newline: 'unix' })
}

/** Unencoded, not in quoted-printable: readers open the file in an editor and copy the link out of it. */
const part = (type: string, content: string) => ({
  raw: `Content-Type: ${type}; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n${content}`,
})

/** A file of that name is there whole or not at all. */
const writeWhole = async (folder: string, name: string, bytes: Buffer): Promise<void> => {
  const file = await open(join(folder, `.${name}.part`), 'w', 0o600)
  try {
    await file.writeFile(bytes)
    await file.sync()
  } finally {
    await file.close()
  }
  await rename(join(folder, `.${name}.part`), join(folder, name))
}
