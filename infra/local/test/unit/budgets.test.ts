// The budgets of the rooms in CONTRIBUTING: lines of source, and files of configuration. Every
// tracked source file is linted.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { repositoryDir } from '../../src/processes/repository.ts'

const tracked = execFileSync('git', ['ls-files'], { cwd: repositoryDir, encoding: 'utf8' }).trim().split('\n')

interface Budget {
  room: string
  folders: string[]
  most: number
  files: RegExp
}

/** Of rows such as | api | `api/` | 9,300 | … |. */
function budgets(): Budget[] {
  const page = readFileSync(join(repositoryDir, '.github/CONTRIBUTING.md'), 'utf8')
  const [, table = ''] = /^## Budgets$(.*?)^## /ms.exec(page) ?? []
  return [...table.matchAll(/^\| ([^|]+?) \| ([^|]+?) \| ([\d,]+) \|/gm)].map(
    ([, room = '', where = '', most = '']) => ({
      room,
      folders: [...where.matchAll(/`([^`]+)`/g)].map(([, folder = '']) => folder),
      most: Number(most.replace(',', '')),
      files: room === 'tests' ? TESTS : SOURCE,
    }),
  )
}

const CODE = String.raw`\.(ts|cts|mts|mjs|cjs|js|tsx|rs|lua|prisma|sh)$`
/** Without tests, generated files, reports and declarations. */
const SOURCE = new RegExp(String.raw`^(?!(.*/)?(test|tests|generated|reports)/)(?!.*(\.test\.|\.d\.ts$)).*${CODE}`)
const TESTS = new RegExp(String.raw`^(?=(.*/)?tests?/|.*\.test\.)(?!.*\.d\.ts$).*${CODE}`)
const rows = budgets()

/** The tracked files of a room: a folder within a room may be a room of its own. */
function filesOf({ folders, files }: Budget): string[] {
  const folderOf = (file: string) =>
    rows
      .filter((row) => row.files === files)
      .flatMap((row) => row.folders)
      .filter((folder) => folder === './' || file.startsWith(folder))
      .sort((a, b) => b.length - a.length)[0]
  return tracked.filter((file) => files.test(file) && folders.includes(folderOf(file) ?? ''))
}

function linesOf(file: string): number {
  return readFileSync(join(repositoryDir, file), 'utf8').split('\n').length - 1
}

test('the table has a budget for every room', () => {
  const names = ['api', 'worker/client', 'worker', 'worker/engine', 'prisma', 'infra', 'loadtests', 'tests']
  assert.deepEqual(
    rows.map(({ room }) => room),
    names,
  )
})

for (const row of rows) {
  test(`${row.room} has at most ${row.most} lines`, () => {
    const files = filesOf(row)
    assert.ok(files.length > 5, row.room)
    const lines = files.reduce((sum, file) => sum + linesOf(file), 0)
    assert.ok(lines <= row.most, `${lines} lines in ${files.length} files: delete, or say why in CONTRIBUTING`)
  })
}

test('the live page has at most 350 lines, with its style', () => {
  const lines = ['page.html', 'live.css', 'live.js'].map((name) => linesOf(`api/src/operators/page/${name}`))
  assert.ok(lines.reduce((sum, count) => sum + count) <= 350, `${lines}`)
})

test('every tracked source file is linted', () => {
  const sources = tracked.filter((file) => /\.([cm]?[jt]s|tsx)$/.test(file))
  assert.ok(sources.length > 500)
  const { files }: { files: { includes: string[] } } = JSON.parse(
    readFileSync(join(repositoryDir, 'biome.json'), 'utf8'),
  )
  const [all, ...left] = files.includes
  assert.equal(all, '**')
  const isLeft = new RegExp(left.map((pattern) => `^${toRegExp(pattern.slice(1))}(/|$)`).join('|'))
  assert.deepEqual(
    sources.filter((file) => isLeft.test(file)),
    [],
  )
  // Biome passes over what git would ignore, although it is tracked.
  const ignored = spawnSync('git', ['check-ignore', '--no-index', '--stdin'], {
    cwd: repositoryDir,
    encoding: 'utf8',
    input: sources.join('\n'),
  })
  assert.equal(ignored.stdout, '')
})

/** Of the globs in biome.json: `**` is any folders, `*` a part of a name. */
function toRegExp(glob: string): string {
  return glob.replace(/[.]/g, '\\.').replace(/\*\*\/|\*/g, (stars) => (stars === '*' ? '[^/]*' : '(.*/)?'))
}
