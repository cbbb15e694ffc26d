import type { MailTexts } from './mail-text.ts'

export const en: MailTexts = {
  invitation: {
    subject: 'You are invited to {{organization}}',
    lines: [
      '{{#inviter}}{{inviter}} invites you to {{organization}} on Waymark.{{/inviter}}{{^inviter}}You are invited to {{organization}} on Waymark.{{/inviter}}',
      'Follow this link to accept. It works once, within 7 days.',
    ],
    button: 'Accept the invitation',
    end: 'If you do not know {{organization}}, ignore this mail: nothing happens.',
  },
  verification: {
    subject: 'Confirm your e-mail address',
    lines: [
      'Somebody signed up to Waymark with this address, probably you.',
      'Follow this link to confirm it and to choose your password. It works once, within 7 days.',
    ],
    button: 'Confirm the address',
    end: 'If it was not you, ignore this mail, or follow the link to take the account over.',
  },
  reset: {
    subject: 'Choose a new password',
    lines: [
      'Somebody asked for a new password for your Waymark account, probably you.',
      'Follow this link to choose one. It works once, within an hour, and signs you out everywhere else.',
    ],
    button: 'Choose a password',
    end: 'If it was not you, ignore this mail: your password stays as it is.',
  },
  reopening: {
    subject: 'An administrator set a new password for you',
    lines: [
      'An administrator of {{organization}} set a new password for your Waymark account.',
      'It opens {{organization}} alone. To open your other organizations again, follow this link and choose a password of your own. It works once, within 7 days.',
    ],
    button: 'Choose a password',
    end: 'If this surprises you, choose a password of your own now.',
  },
  factorRemoved: {
    subject: 'An administrator took your second factor off',
    lines: [
      'An administrator of {{organization}} took the second factor off your Waymark account.',
      'Your password opens {{organization}} alone until you choose a new one. To open your other organizations again, follow this link. It works once, within 7 days.',
    ],
    button: 'Choose a password',
    end: 'If this surprises you, choose a new password now and set up a second factor again.',
  },
  emailChange: {
    subject: 'Confirm your new e-mail address',
    lines: [
      'The Waymark account of {{oldEmail}} is to use this address from now on.',
      'Follow this link to confirm that. It works once, within 7 days.',
    ],
    button: 'Confirm the address',
    end: 'If this is not your account, ignore this mail: nothing changes.',
  },
  emailUndo: {
    subject: 'Your e-mail address is about to change',
    lines: [
      'Your Waymark account is to use {{newEmail}} in place of this address, as soon as somebody confirms it there.',
      'If you did not ask for this, follow this link. It keeps this address, or brings it back if it has changed by then, signs everybody out and lets you choose a new password. It works once, within 7 days.',
    ],
    button: 'Undo the change',
    end: 'If you asked for it yourself, ignore this mail. Otherwise tell an administrator of {{organization}}, too.',
  },
  export: {
    subject: '{{config}} is ready',
    lines: [
      'The export {{config}} of {{organization}} has {{rows}} rows.',
      'Anyone with this link can download the file until {{until}} (UTC).',
    ],
    button: 'Download the file',
    end: 'This mail comes from a schedule of {{organization}}; who set it up can take your address off.',
  },
}
