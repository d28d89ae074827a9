// The pages say what to type, and what one run measured: both are held against the programs and the committed results.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { parseOptions as parseStart } from '@spillway/infra/start/options'
import { describe, test } from 'vitest'
import { renderReport } from '../../report/report.ts'
import { parseOptions } from '../../src/options.ts'
import { readResults, summarize } from '../../src/results.ts'
import { parseOptions as parseStorm } from '../../storm/src/command.ts'

const repository = new URL('../../../', import.meta.url)
const page = (path: string) => readFileSync(new URL(path, repository), 'utf8')

describe('the commands of the pages', () => {
  const pages = ['README.md', 'infra/local/README.md', 'api/README.md', 'api/examples/README.md'].map(page).join('\n')
  const blocks = [...pages.matchAll(/```sh\n(.*?)```/gs)]
    .map(([, block = '']) => block.replaceAll('\\\n', ' '))
    .join('')
  const argumentsOf = (command: string) =>
    [...blocks.matchAll(new RegExp(`^.*pnpm ${command}\\b([^#\\n]*)`, 'gm'))].map(([, args = '']) =>
      Array.from(args.matchAll(/'([^']*)'|\S+/g), ([word, quoted]) => quoted ?? word),
    )

  test('start one worker: a second would hash on the same cores', () => {
    const starts = argumentsOf('start').map(parseStart)
    assert.ok(starts.length > 0)
    assert.deepEqual(
      starts.filter(({ workers }) => workers > 1),
      [],
    )
  })

  test('are understood by the load test, and by the storm', async () => {
    const isStorm = ([name]: string[]) => name === 'storm'
    const [storms, loads] = [argumentsOf('load').filter(isStorm), argumentsOf('load').filter((args) => !isStorm(args))]
    assert.ok(loads.length > 0 && storms.length > 0)
    for (const args of loads) parseOptions(args)
    for (const [, ...args] of storms) await parseStorm(args, 'pnpm load storm')
  })
})

describe('the tables of results', () => {
  const results = readResults(fileURLToPath(new URL('loadtests/reports/report.json', repository)))
  const rows = new Map<string, [scenario: string, variant: string, figure: string]>([
    [
      "p99 of an endpoint on libuv's thread pool while a hundred users log in, bcrypt",
      ['login-100', 'bcrypt', 'neighbourP99Ms'],
    ],
    ['the same, argon2id', ['login-100', 'argon2id', 'neighbourP99Ms']],
    ['p99 of an endpoint that needs no thread of the pool meanwhile, bcrypt', ['login-100', 'bcrypt', 'healthzP99Ms']],
    ['that endpoint, argon2id', ['login-100', 'argon2id', 'healthzP99Ms']],
    ['logins a second meanwhile, bcrypt', ['login-100', 'bcrypt', 'perSecond']],
    ['logins a second meanwhile, argon2id', ['login-100', 'argon2id', 'perSecond']],
    ['lost when five thousand users arrive at once, argon2id', ['stress-5000', 'argon2id', 'failedPercent']],
    ['p99 of the endpoint on the thread pool meanwhile', ['stress-5000', 'argon2id', 'neighbourP99Ms']],
    ['p99 of the endpoint that needs no thread meanwhile', ['stress-5000', 'argon2id', 'healthzP99Ms']],
    ['lost in ten seconds at ten times capacity, argon2id', ['spike', 'argon2id', 'failedPercent']],
    ['time of a login beyond its hash, without other load', ['idle', 'argon2id', 'overheadMs']],
  ])

  for (const [path, count] of [
    ['README.md', 5],
    ['loadtests/README.md', rows.size],
  ] as const) {
    test(`${path} says what the committed run measured`, () => {
      const lines = [...page(path).matchAll(/^\| ([a-z].+?) \| (\d\S*)(?: \S+)? \| (\d\S*)(?: \S+)? \|$/gm)]
      assert.equal(new Set(lines.map(([, label]) => label)).size, count)
      for (const [, label = '', inHandler = '', spillway = ''] of lines) {
        const [scenario, variant, name] = rows.get(label) ?? assert.fail(label)
        const measured = results.scenarios.filter((each) => each.name === scenario).flatMap(summarize)
        for (const [contender, said] of [
          ['in-process', inHandler],
          ['spillway', spillway],
        ] as const) {
          const summary = measured.find((each) => each.contender === contender && each.variant === variant)
          const value = summary?.figures[name]
          assert.ok(value !== undefined, `${label}: ${contender} was not measured`)
          const digits = said.split('.')[1]?.length ?? 0
          assert.equal(said.replaceAll(',', ''), value.toFixed(digits), `${label}: ${contender}`)
        }
      }
    })
  }
})

test('the committed report is what is drawn from its figures, and all of it is below 100 kB', () => {
  const reports = new URL('loadtests/reports/', repository)
  const results = readResults(fileURLToPath(new URL('report.json', reports)))
  assert.equal(page('loadtests/reports/report.html'), renderReport(results))
  const sizes = readdirSync(reports).map((name) => statSync(new URL(name, reports)).size)
  assert.ok(sizes.reduce((sum, size) => sum + size, 0) < 100_000)
})
