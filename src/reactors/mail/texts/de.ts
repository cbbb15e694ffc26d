import type { MailTexts } from './mail-text.ts'

export const de: MailTexts = {
  invitation: {
    subject: 'Sie sind zu {{organization}} eingeladen',
    lines: [
      '{{#inviter}}{{inviter}} lädt Sie zu {{organization}} auf Waymark ein.{{/inviter}}{{^inviter}}Sie sind zu {{organization}} auf Waymark eingeladen.{{/inviter}}',
      'Folgen Sie diesem Link, um die Einladung anzunehmen. Er gilt einmal und 7 Tage lang.',
    ],
    button: 'Einladung annehmen',
    end: 'Wenn Sie {{organization}} nicht kennen, ignorieren Sie diese E-Mail: Es geschieht nichts.',
  },
  verification: {
    subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
    lines: [
      'Jemand hat sich mit dieser Adresse bei Waymark angemeldet, vermutlich Sie selbst.',
      'Folgen Sie diesem Link, um die Adresse zu bestätigen und Ihr Passwort zu wählen. Er gilt einmal und 7 Tage lang.',
    ],
    button: 'Adresse bestätigen',
    end: 'Wenn Sie es nicht waren, ignorieren Sie diese E-Mail, oder übernehmen Sie das Konto über den Link.',
  },
  reset: {
    subject: 'Wählen Sie ein neues Passwort',
    lines: [
      'Jemand hat ein neues Passwort für Ihr Waymark-Konto angefordert, vermutlich Sie selbst.',
      'Folgen Sie diesem Link, um eines zu wählen. Er gilt einmal und eine Stunde lang und meldet Sie überall sonst ab.',
    ],
    button: 'Passwort wählen',
    end: 'Wenn Sie es nicht waren, ignorieren Sie diese E-Mail: Ihr Passwort bleibt, wie es ist.',
  },
  reopening: {
    subject: 'Ein Administrator hat Ihnen ein neues Passwort gesetzt',
    lines: [
      'Ein Administrator von {{organization}} hat ein neues Passwort für Ihr Waymark-Konto gesetzt.',
      'Es öffnet nur {{organization}}. Um Ihre anderen Organisationen wieder zu öffnen, folgen Sie diesem Link und wählen Sie ein eigenes Passwort. Er gilt einmal und 7 Tage lang.',
    ],
    button: 'Passwort wählen',
    end: 'Wenn Sie das überrascht, wählen Sie jetzt ein eigenes Passwort.',
  },
  factorRemoved: {
    subject: 'Ein Administrator hat Ihren zweiten Faktor entfernt',
    lines: [
      'Ein Administrator von {{organization}} hat den zweiten Faktor Ihres Waymark-Kontos entfernt.',
      'Bis Sie ein neues Passwort wählen, öffnet Ihr Passwort nur {{organization}}. Um Ihre anderen Organisationen wieder zu öffnen, folgen Sie diesem Link. Er gilt einmal und 7 Tage lang.',
    ],
    button: 'Passwort wählen',
    end: 'Wenn Sie das überrascht, wählen Sie jetzt ein neues Passwort und richten Sie den zweiten Faktor neu ein.',
  },
  emailChange: {
    subject: 'Bestätigen Sie Ihre neue E-Mail-Adresse',
    lines: [
      'Das Waymark-Konto von {{oldEmail}} soll künftig diese Adresse verwenden.',
      'Folgen Sie diesem Link, um das zu bestätigen. Er gilt einmal und 7 Tage lang.',
    ],
    button: 'Adresse bestätigen',
    end: 'Wenn das nicht Ihr Konto ist, ignorieren Sie diese E-Mail: Es ändert sich nichts.',
  },
  emailUndo: {
    subject: 'Ihre E-Mail-Adresse soll geändert werden',
    lines: [
      'Ihr Waymark-Konto soll {{newEmail}} statt dieser Adresse verwenden, sobald das dort jemand bestätigt.',
      'Wenn Sie das nicht veranlasst haben, folgen Sie diesem Link. Er behält diese Adresse bei oder stellt sie wieder her, meldet alle ab und lässt Sie ein neues Passwort wählen. Er gilt einmal, 7 Tage lang.',
    ],
    button: 'Änderung rückgängig machen',
    end: 'Wenn Sie es selbst veranlasst haben, ignorieren Sie diese E-Mail. Sonst melden Sie es auch einem Administrator von {{organization}}.',
  },
  export: {
    subject: '{{config}} ist fertig',
    lines: [
      'Der Export {{config}} von {{organization}} hat {{rows}} Zeilen.',
      'Wer diesen Link hat, kann die Datei bis {{until}} (UTC) herunterladen.',
    ],
    button: 'Datei herunterladen',
    end: 'Diese E-Mail kommt aus einem Zeitplan von {{organization}}; wer ihn angelegt hat, kann Ihre Adresse entfernen.',
  },
}
