import { test } from 'tap'
import { isRecipient } from '../../src/kernel/recipient.ts'

test('mail goes to one address of the open network', (t) => {
  for (const address of [
    'ada@example.com',
    'ada.kowalska+alerts@mail.example.co.uk',
    "o'neil@example.com",
    'ada@münchen.example',
    'zoë@example.com',
    'ada@xn--mnchen-3ya.example',
    'ada@localhost.example.com',
    'ada@local.com',
    'ada@1.example',
  ])
    t.ok(isRecipient(address), address)
  for (const address of [
    'ada',
    'ada@',
    '@example.com',
    'a@localhost',
    'a@LOCALHOST.',
    'a@host',
    'a@printer.local',
    'a@db.internal',
    'a@x.localhost',
    'a@router.lan',
    'a@fritz.home.arpa',
    'a@mail.corp',
    'a@127.0.0.1',
    'a@[127.0.0.1]',
    'a@[IPv6:::1]',
    'a@2130706433',
    'a@example..com',
    'a@-example.com',
    'a@example.com.',
    'a@b@example.com',
    'a,b@example.com',
    'a@example.com\r\nBcc: b@example.com',
    'a@example.com\n',
    'a\u0000@example.com',
    'a\u0007@example.com',
    'a\u007f@example.com',
    'a\u200b@example.com',
    'a@exam\u00adple.com',
    'a\u202emoc.elpmaxe@example.com',
    'a\u2066@example.com',
    'a\u00a0@example.com',
    'A <a@example.com>',
    `${'a'.repeat(250)}@example.com`,
  ])
    t.notOk(isRecipient(address), JSON.stringify(address))
  t.end()
})
