import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { test } from 'tap'
import ts from 'typescript'

/** What a new file and a new function may have at most; longer ones are listed in tidy.json, where a number may only fall. */
const FILE_LINES_MAX = 300
const FUNCTION_LINES_MAX = 60

const allowed = JSON.parse(readFileSync('test/tidy.json', 'utf8')) as {
  files: { [file: string]: number }
  functions: { [name: string]: number }
}
const sources = execFileSync(
  'git',
  ['ls-files', '--cached', '--others', '--exclude-standard', 'src', 'projections', 'bench'],
  { encoding: 'utf8' },
)
  .split('\n')
  .filter((file) => file.endsWith('.ts') && existsSync(file))

const functionsOf = (file: string, text: string): { name: string; lines: number }[] => {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, true)
  const lineAt = (position: number): number => source.getLineAndCharacterOfPosition(position).line
  const found: { name: string; lines: number }[] = []
  const visit = (node: ts.Node, owner: string): void => {
    let name = owner
    if (ts.isFunctionLike(node) && 'body' in node && node.body) {
      const own =
        (node as ts.NamedDeclaration).name ??
        (ts.isVariableDeclaration(node.parent) || ts.isPropertyAssignment(node.parent) ? node.parent.name : undefined)
      name = own ? own.getText(source) : owner
      if (own) found.push({ name: `${file}:${name}`, lines: lineAt(node.end) - lineAt(node.getStart(source)) + 1 })
    }
    ts.forEachChild(node, (child) => visit(child, name))
  }
  visit(source, file)
  return found
}

const over = (measured: { name: string; lines: number }[], max: number, list: { [name: string]: number }): string[] =>
  measured
    .filter(({ name, lines }) => lines > Math.max(max, list[name] ?? 0))
    .map(({ name, lines }) => `${name} has ${lines} lines`)

const slack = (
  measured: { name: string; lines: number }[],
  max: number,
  list: { [name: string]: number },
): string[] => {
  const lines = new Map(measured.map((one) => [one.name, one.lines]))
  return Object.entries(list)
    .filter(([name, most]) => (lines.get(name) ?? 0) < most || most <= max)
    .map(([name, most]) => `${name}: lower ${most} to ${lines.get(name) ?? 'nothing'}`)
}

test('files and functions stay short', async (t) => {
  const texts = sources.map((file) => ({ file, text: readFileSync(file, 'utf8') }))
  const files = texts.map(({ file, text }) => ({ name: file, lines: text.split('\n').length - 1 }))
  const functions = texts.flatMap(({ file, text }) => functionsOf(file, text))
  t.ok(files.length > 20 && functions.length > 100, 'the sources were found')
  t.same(over(files, FILE_LINES_MAX, allowed.files), [], 'no file is longer than allowed')
  t.same(over(functions, FUNCTION_LINES_MAX, allowed.functions), [], 'no function is longer than allowed')
  t.same(slack(files, FILE_LINES_MAX, allowed.files), [], 'the list of files holds no slack')
  t.same(slack(functions, FUNCTION_LINES_MAX, allowed.functions), [], 'the list of functions holds no slack')
})
