// The verdict on a run of Stryker: the score, and the unnoticed mistakes beside those that survivors.txt names.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { MutantResult } from '@stryker-mutator/api/core'

const SCORE_MIN = 90

/**
 * The named mistakes, each as `module: line`, where the line is as the mistake leaves it, without its indentation (of several lines the
 * first). A line that begins with a number sign is the reason why those below it may stand; text before the first reason is a preface.
 */
export function readSurvivors(): string[] {
  const [, ...reasons] = readFileSync(new URL('../survivors.txt', import.meta.url), 'utf8').split(/^# .*\n/m)
  return reasons.flatMap((mistakes) => mistakes.split('\n').filter((line) => line !== ''))
}

export type Verdict = ReturnType<typeof judge>

export function judge(mutants: readonly MutantResult[], named: readonly string[]) {
  const noticed = mutants.filter(({ status }) => status === 'Killed' || status === 'Timeout').length
  const unnoticed = mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage').map(mistakeOf)
  const tried = noticed + unnoticed.length
  /** Percent of the mistakes that were noticed. */
  const score = (noticed * 100) / tried
  /** Unnoticed, and not named. */
  const unnamed = without(unnoticed, named)
  /** Named, and noticed or gone. */
  const outdated = without(named, unnoticed)
  const isGood = score >= SCORE_MIN && unnamed.length === 0 && outdated.length === 0
  return { tried, noticed, score, unnamed, outdated, isGood }
}

export function report({ tried, noticed, score, unnamed, outdated }: Verdict): string {
  return [
    ...unnamed.map((mistake) => `unnoticed, and not named: ${mistake}`),
    ...outdated.map((mistake) => `named, but noticed or gone: ${mistake}`),
    `${noticed} of ${tried} mistakes noticed: ${score.toFixed(1)} %, ${tried - noticed} unnoticed, ${unnamed.length} of them not named`,
  ].join('\n')
}

/** Stryker counts lines and columns from 1. */
function mistakeOf({ fileName, location: { start, end }, replacement = '' }: MutantResult): string {
  const text = readFileSync(fileName, 'utf8').split('\n')[start.line - 1] ?? ''
  const rest = end.line === start.line ? text.slice(end.column - 1) : ''
  const [becomes = ''] = replacement.split('\n')
  return `${relative(process.cwd(), fileName)}: ${`${text.slice(0, start.column - 1)}${becomes}${rest}`.trim()}`
}

/** The mistakes of one list that are not in the other; one that is twice in a list must be twice in the other. */
function without(mistakes: readonly string[], others: readonly string[]): string[] {
  const left = [...others]
  return mistakes.filter((mistake) => {
    const at = left.indexOf(mistake)
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}
