// README says what to type, and what one run measured: both are held against the programs and the committed results.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { parseOptions as parseStart } from '@spillway/local/start/options'
import { figure } from '../report/section.ts'
import { parseOptions } from '../src/options.ts'
import { readResults } from '../src/results-file.ts'
import { summarize } from '../src/summary.ts'

const repository = new URL('../../', import.meta.url)
const readme = readFileSync(new URL('README.md', repository), 'utf8')

describe('the commands in README', () => {
  const blocks = [...readme.matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block).join('')
  const argumentsOf = (command: string) =>
    [...blocks.matchAll(new RegExp(`^.*pnpm ${command}\\b([^#\\n]*)`, 'gm'))].map(([, args = '']) =>
      args.split(/\s+/).filter((word) => word !== ''),
    )

  test('start one worker: a second would hash on the same cores', () => {
    const starts = argumentsOf('start').map(parseStart)
    assert.ok(starts.length > 0)
    assert.deepEqual(
      starts.filter(({ workers }) => workers > 1),
      [],
    )
  })

  test('are understood by the load test', () => {
    const loads = argumentsOf('load')
    assert.ok(loads.length > 0)
    for (const args of loads) parseOptions(args)
  })
})

describe('the table in README', () => {
  const results = readResults(fileURLToPath(new URL('loadtests/reports/report.json', repository)))
  const rows: [label: string, scenario: string, variant: string, figure: string][] = [
    ["p99 of an endpoint on libuv's thread pool while a hundred users", 'login-100', 'bcrypt', 'neighbourP99Ms'],
    ['the same', 'login-100', 'argon2id', 'neighbourP99Ms'],
    ['p99 of an endpoint that needs no thread of the pool', 'login-100', 'bcrypt', 'healthzP99Ms'],
    ['the same', 'login-100', 'argon2id', 'healthzP99Ms'],
    ['logins a second', 'login-100', 'bcrypt', 'perSecond'],
    ['the same', 'login-100', 'argon2id', 'perSecond'],
    ['lost when five thousand', 'stress-5000', 'argon2id', 'failedPercent'],
    ['p99 of the endpoint on the thread pool', 'stress-5000', 'argon2id', 'neighbourP99Ms'],
    ['p99 of the one that needs none', 'stress-5000', 'argon2id', 'healthzP99Ms'],
    ['lost in ten seconds', 'spike', 'argon2id', 'failedPercent'],
    ['what a login takes over the bare hash', 'idle', 'argon2id', 'overheadMs'],
  ]
  const lines = [...readme.matchAll(/^\| ([a-z].+?) \| (\S+)(?: \S+)? \| (\S+)(?: \S+)? \|$/gm)]
    .map(([, label = '', inHandler = '', spillway = '']) => ({ label, inHandler, spillway }))
    .filter(({ inHandler }) => /^\d/.test(inHandler))

  test('says what the committed run measured, beside and off the thread pool', () => {
    assert.equal(lines.length, rows.length)
    for (const [index, [label, scenario, variant, name]] of rows.entries()) {
      const line = lines[index]
      assert.ok(line !== undefined)
      assert.ok(line.label.startsWith(label), line.label)
      const measured = results.scenarios.filter((each) => each.name === scenario).flatMap(summarize)
      for (const [contender, said] of [
        ['in-process', line.inHandler],
        ['spillway', line.spillway],
      ]) {
        const of = measured.find((each) => each.contender === contender && each.variant === variant)
        const value = figure(of, name)
        assert.ok(value !== undefined && said !== undefined, `${line.label}: ${contender} was not measured`)
        const digits = said.split('.')[1]?.length ?? 0
        assert.equal(said.replaceAll(',', ''), value.toFixed(digits), `${line.label}: ${contender}`)
      }
    }
  })
})
