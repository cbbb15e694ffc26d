import type { MailTexts } from './mail-text.ts'

export const pl: MailTexts = {
  invitation: {
    subject: 'Zaproszenie do {{organization}}',
    lines: [
      '{{#inviter}}{{inviter}} zaprasza Cię do {{organization}} w Waymark.{{/inviter}}{{^inviter}}Masz zaproszenie do {{organization}} w Waymark.{{/inviter}}',
      'Aby je przyjąć, otwórz ten odnośnik. Działa raz, przez 7 dni.',
    ],
    button: 'Przyjmij zaproszenie',
    end: 'Jeśli nie znasz {{organization}}, zignoruj tę wiadomość: nic się nie stanie.',
  },
  verification: {
    subject: 'Potwierdź swój adres e-mail',
    lines: [
      'Ktoś założył konto w Waymark z tym adresem, zapewne Ty.',
      'Otwórz ten odnośnik, aby potwierdzić adres i wybrać hasło. Działa raz, przez 7 dni.',
    ],
    button: 'Potwierdź adres',
    end: 'Jeśli to nie Ty, zignoruj tę wiadomość albo przejmij konto, otwierając odnośnik.',
  },
  reset: {
    subject: 'Wybierz nowe hasło',
    lines: [
      'Ktoś poprosił o nowe hasło do Twojego konta Waymark, zapewne Ty.',
      'Otwórz ten odnośnik, aby je wybrać. Działa raz, przez godzinę, i wylogowuje Cię ze wszystkich innych miejsc.',
    ],
    button: 'Wybierz hasło',
    end: 'Jeśli to nie Ty, zignoruj tę wiadomość: Twoje hasło się nie zmieni.',
  },
  reopening: {
    subject: 'Administrator ustawił Ci nowe hasło',
    lines: [
      'Administrator {{organization}} ustawił nowe hasło do Twojego konta Waymark.',
      'Otwiera ono tylko {{organization}}. Aby znów otwierać pozostałe organizacje, otwórz ten odnośnik i wybierz własne hasło. Działa raz, przez 7 dni.',
    ],
    button: 'Wybierz hasło',
    end: 'Jeśli Cię to dziwi, od razu wybierz własne hasło.',
  },
  factorRemoved: {
    subject: 'Administrator wyłączył Twój drugi składnik',
    lines: [
      'Administrator {{organization}} wyłączył drugi składnik logowania do Twojego konta Waymark.',
      'Dopóki nie wybierzesz nowego hasła, Twoje hasło otwiera tylko {{organization}}. Aby znów otwierać pozostałe organizacje, otwórz ten odnośnik. Działa raz, przez 7 dni.',
    ],
    button: 'Wybierz hasło',
    end: 'Jeśli Cię to dziwi, od razu wybierz nowe hasło i ponownie włącz drugi składnik.',
  },
  emailChange: {
    subject: 'Potwierdź swój nowy adres e-mail',
    lines: [
      'Konto Waymark o adresie {{oldEmail}} ma odtąd używać tego adresu.',
      'Aby to potwierdzić, otwórz ten odnośnik. Działa raz, przez 7 dni.',
    ],
    button: 'Potwierdź adres',
    end: 'Jeśli to nie Twoje konto, zignoruj tę wiadomość: nic się nie zmieni.',
  },
  emailUndo: {
    subject: 'Twój adres e-mail ma się zmienić',
    lines: [
      'Twoje konto Waymark ma używać {{newEmail}} zamiast tego adresu, gdy tylko ktoś to tam potwierdzi.',
      'Jeśli o to nie prosisz, użyj tego linku. Zachowa on ten adres albo go przywróci, wyloguje wszystkich i pozwoli wybrać nowe hasło. Działa raz, przez 7 dni.',
    ],
    button: 'Cofnij zmianę',
    end: 'Jeśli to Twoja prośba, zignoruj tę wiadomość. W przeciwnym razie powiadom też administratora {{organization}}.',
  },
  export: {
    subject: '{{config}} jest gotowy',
    lines: [
      'Eksport {{config}} organizacji {{organization}} ma następującą liczbę wierszy: {{rows}}.',
      'Każdy, kto ma ten link, może pobrać plik do {{until}} (UTC).',
    ],
    button: 'Pobierz plik',
    end: 'Ta wiadomość pochodzi z harmonogramu organizacji {{organization}}; osoba, która go utworzyła, może usunąć Twój adres.',
  },
}
