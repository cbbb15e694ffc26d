import { test } from 'tap'
import { renderTemplate, templateFault } from '../../../src/kit/values/template.ts'

const plain = { escape: (value: string) => value, charsMax: 1_000 }
const marked = { escape: (value: string) => `<${value}>`, charsMax: 1_000 }

const DATA = {
  task: {
    title: 'Deliver',
    tags: ['cold', 'heavy'],
    isLate: false,
    count: 0,
    components: { lines: [{ name: 'a', n: 1 }, { name: 'b' }], place: { lat: 1, lng: 2 }, when: null },
  },
  name: 'outer',
}

test('a text with values, sections and inverted sections', (t) => {
  const cases: [string, string][] = [
    ['{{task.title}}!', 'Deliver!'],
    ['{{ task.title }} {{! a comment }}', 'Deliver '],
    ['{{#task.components.lines}}{{name}}={{n}};{{/task.components.lines}}', 'a=1;b=;'],
    ['{{#task.tags}}{{.}} {{/task.tags}}', 'cold heavy '],
    ['{{#task}}{{title}} {{name}}{{/task}}', 'Deliver outer'],
    ['{{^task.isLate}}in time{{/task.isLate}}{{#task.isLate}}late{{/task.isLate}}', 'in time'],
    ['{{#task.count}}counted{{/task.count}}', 'counted'],
    ['{{task.tags}}', 'cold, heavy'],
    ['{{task.components.place}}', '{"lat":1,"lng":2}'],
    ['[{{task.missing}}{{task.components.when}}{{missing.deep}}]', '[]'],
    ['{{=<% %>=}}<% task.title %>', 'Deliver'],
    ['', ''],
  ]
  for (const [template, text] of cases) t.equal(renderTemplate(template, DATA, plain), text, template)
  t.equal(renderTemplate('{{name}} {{{name}}} {{&name}}', DATA, marked), '<outer> <outer> <outer>', 'always escaped')
  t.equal(renderTemplate('{{a}}', { a: '{{name}}', name: 'x' }, plain), '{{name}}', 'a value is no template')
  t.end()
})

test('nothing but own members is reached, and nothing is called', (t) => {
  const data = Object.assign(Object.create({ inherited: 'no' }), { a: 'text', list: [1], run: () => 'called' })
  for (const path of ['inherited', 'constructor', 'a.length', 'toString', 'a.constructor.name', 'run'])
    t.equal(renderTemplate(`[{{${path}}}]`, data, plain), '[]', path)
  t.equal(renderTemplate('{{#constructor}}in{{/constructor}}', data, plain), '')
  t.end()
})

test('a result is bounded, however long the lists are that it goes through', (t) => {
  const list = Array.from({ length: 1_000 }, (_, n) => n)
  const text = renderTemplate('{{#list}}{{.}},{{/list}}', { list }, { ...plain, charsMax: 20 })
  t.equal(text, '0,1,2,3,4,5,6,7,8,9…')
  const nested = `${'{{#list}}'.repeat(9)}${'{{/list}}'.repeat(9)}`
  t.equal(renderTemplate(nested, { list }, plain), '…', 'it ends although it writes nothing')
  t.equal(renderTemplate('{{a}}', { a: 'x'.repeat(1_000) }, plain), 'x'.repeat(1_000))
  t.end()
})

test('templates that name what is not there or could do harm are refused', (t) => {
  const known = ['task', 'task.title', 'task.tags', 'task.tags.0', 'task.lines', 'task.lines.0', 'task.lines.0.name']
  const pathFault = (path: string) => (known.includes(path) ? undefined : 'is no path')
  const fine = [
    '{{task.title}}',
    '{{#task}}{{title}}{{/task}}',
    '{{#task.lines}}{{name}}{{/task.lines}}',
    '{{#task}}{{#lines}}{{name}} {{task.title}}{{/lines}}{{/task}}',
    '{{#task.tags}}{{.}}{{/task.tags}}',
    '{{^task.tags}}{{task.title}}{{/task.tags}}',
    `${'{{#task}}'.repeat(10)}${'{{/task}}'.repeat(10)}`,
  ]
  for (const template of fine) t.equal(templateFault(template, pathFault), undefined, template)
  const bad: [string, RegExp][] = [
    ['{{task.titel}}', /\{\{task\.titel\}\} is no path/],
    ['{{#task.lines}}{{nam}}{{/task.lines}}', /is no path/],
    ['{{^task}}{{title}}{{/task}}', /is no path/],
    ['{{>header}}', /partials/],
    ['{{.}}', /section/],
    ['{{task.title', /Unclosed tag/],
    ['{{#task}}', /Unclosed section/],
    ['{{}}', /empty tag/],
    ['{{__proto__.x}}', /__proto__/],
    ['x'.repeat(10_001), /at most 10000 characters/],
    [`{{${' '.repeat(5_000)}`, /blanks/],
    [`${'{{#task}}'.repeat(11)}${'{{/task}}'.repeat(11)}`, /at most 10 sections/],
    [`${'{{^a}}'.repeat(800)}${'{{/a}}'.repeat(800)}`, /no path|sections/],
  ]
  for (const [template, fault] of bad) t.match(templateFault(template, pathFault), fault, template.slice(0, 40))
  const deep = 10_000
  t.match(
    templateFault(`${'{{#a}}'.repeat(deep)}${'{{/a}}'.repeat(deep)}`, () => undefined, 1e6),
    /sections/,
  )
  t.end()
})

test('what a template costs to check grows with its tags, however its sections nest', (t) => {
  let looks = 0
  const members = ['type', 'type.fields', 'record', 'record.values']
  const pathFault = (path: string) => {
    looks++
    return members.includes(path) || path.startsWith('record.values.') ? undefined : 'is no path'
  }
  const sections = ['type', 'fields', 'type', 'fields', 'type', 'fields', 'type', 'fields', 'record', 'values']
  const open = sections.map((name) => `{{#${name}}}`).join('')
  const close = sections
    .toReversed()
    .map((name) => `{{/${name}}}`)
    .join('')
  const names = Array.from({ length: 1_000 }, (_, i) => `{{a${i}}}`).join('')
  t.equal(templateFault(open + names + close, pathFault), undefined)
  t.ok(looks < 20_000, `${looks} looks for 1,000 names`)
  t.end()
})
