import { type Test, test } from 'tap'
import type { Mail, Mailer } from '../../src/engines/mailer.ts'
import { readMail } from '../support/read-mail.ts'

export interface MailerUnderTest {
  mailer: Mailer
  /** The sources of all that it has taken. */
  taken(): Promise<string[]> | string[]
}

export const MAIL: Mail = {
  id: '4b1d8a52-6d5e-5b1a-9c1e-2f6f0f3a9b11',
  to: 'ada@example.com',
  subject: 'Zażółć gęślą jaźń – and a subject that is so long that it does not fit one line of a header',
  text: `Follow this link: https://map.example.com/reset-password?token=${'a1_-'.repeat(22)}\n\nGrüße – „Zażółć”.\n.\nAfter a dot alone.\n`,
  html: `<p>Follow <a href="https://map.example.com/reset-password?token=${'a1_-'.repeat(22)}">this link</a> – „Zażółć”.</p>\n`,
  at: Date.parse('2026-11-22T10:00:00.000Z'),
}

/** What every engine promises. `open` answers one whose sender is `Waymark <waymark@example.com>`. */
export const mailerContract = (name: string, open: (t: Test) => Promise<MailerUnderTest>): void => {
  test(`${name}: a mail arrives as it was written`, async (t) => {
    const { mailer, taken } = await open(t)
    t.same(await mailer.send(MAIL), { kind: 'sent' })
    const sources = await taken()
    t.equal(sources.length, 1)
    const { headers, text, html } = readMail(sources[0])
    t.match(headers, {
      from: 'Waymark <waymark@example.com>',
      to: 'ada@example.com',
      subject: MAIL.subject,
      'message-id': `<${MAIL.id}@waymark>`,
    })
    t.equal(Date.parse(headers.date), MAIL.at)
    t.equal(text.trim(), MAIL.text.trim())
    t.equal(html.trim(), MAIL.html.trim())
  })

  test(`${name}: the same mail again has the same Message-ID`, async (t) => {
    const { mailer, taken } = await open(t)
    await mailer.send(MAIL)
    t.same(await mailer.send(MAIL), { kind: 'sent' })
    const ids = (await taken()).map((source) => readMail(source).headers['message-id'])
    t.same([...new Set(ids)], [`<${MAIL.id}@waymark>`])
  })

  test(`${name}: nothing in a field makes another header or another recipient`, async (t) => {
    const { mailer, taken } = await open(t)
    for (const to of [
      'a@example.com, b@example.com',
      'a@example.com\r\nBcc: b@example.com',
      'A <a@example.com>',
      'nobody',
      'a@localhost',
      'a@mail.internal',
      'a@[127.0.0.1]',
      'a\u202e@example.com',
      'a\u0007@example.com',
    ])
      t.match(await mailer.send({ ...MAIL, to }), { kind: 'refused' }, to)
    t.same(await taken(), [])
    await mailer.send({ ...MAIL, subject: 'Hello\r\nBcc: eve@example.com\r\n\r\nAnother body' })
    const { headers, text } = readMail((await taken())[0])
    t.equal(headers.bcc, undefined)
    t.equal(headers.to, 'ada@example.com')
    t.equal(text.trim(), MAIL.text.trim())
  })

  test(`${name}: many at once all arrive, and closing waits for them`, async (t) => {
    const { mailer, taken } = await open(t)
    const ids = Array.from({ length: 20 }, (_, i) => `mail-${i}`)
    const outcomes = ids.map((id) => mailer.send({ ...MAIL, id }))
    await mailer.close()
    t.same(new Set((await Promise.all(outcomes)).map(({ kind }) => kind)), new Set(['sent']))
    t.same(
      (await taken()).map((source) => readMail(source).headers['message-id']).sort(),
      ids.map((id) => `<${id}@waymark>`).sort(),
    )
  })
}
