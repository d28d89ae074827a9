// What a run of Stryker comes to: the score, and how the mistakes that went unnoticed compare with those that are named.
import { readFileSync } from 'node:fs'
import { relative } from 'node:path'
import type { MutantResult } from '@stryker-mutator/api/core'
import type { Mistake } from './survivors.ts'

const SCORE_MIN = 90

export interface Verdict {
  tried: number
  noticed: number
  /** Of a hundred mistakes, so many were noticed. */
  score: number
  /** Unnoticed, and not among the named. */
  unnamed: Mistake[]
  /** Named, and noticed or gone by now. */
  outdated: Mistake[]
  isGood: boolean
}

export function judge(mutants: readonly MutantResult[], named: readonly Mistake[]): Verdict {
  const noticed = mutants.filter(({ status }) => status === 'Killed' || status === 'Timeout').length
  const unnoticed = mutants.filter(({ status }) => status === 'Survived' || status === 'NoCoverage').map(mistakeOf)
  const tried = noticed + unnoticed.length
  const score = (noticed * 100) / tried
  const unnamed = without(unnoticed, named)
  const outdated = without(named, unnoticed)
  const isGood = score >= SCORE_MIN && unnamed.length === 0 && outdated.length === 0
  return { tried, noticed, score, unnamed, outdated, isGood }
}

export function report({ tried, noticed, score, unnamed, outdated }: Verdict): string {
  return [
    ...unnamed.map(({ module, line }) => `unnoticed, and not named: ${module}: ${line}`),
    ...outdated.map(({ module, line }) => `named, and not unnoticed any more: ${module}: ${line}`),
    `${noticed} of ${tried} mistakes noticed: ${score.toFixed(1)} %, ${tried - noticed} unnoticed, ${unnamed.length} of them not named`,
  ].join('\n')
}

/** Stryker counts lines and columns from 1. */
function mistakeOf({ fileName, location: { start, end }, replacement = '' }: MutantResult): Mistake {
  const text = readFileSync(fileName, 'utf8').split('\n')[start.line - 1] ?? ''
  const rest = end.line === start.line ? text.slice(end.column - 1) : ''
  const [becomes = ''] = replacement.split('\n')
  const line = `${text.slice(0, start.column - 1)}${becomes}${rest}`.trim()
  return { module: relative(process.cwd(), fileName), line }
}

/** Those of one list that are not in the other; where one is there twice, it has to be so in both. */
function without(mistakes: readonly Mistake[], others: readonly Mistake[]): Mistake[] {
  const left = others.map(keyOf)
  return mistakes.filter((mistake) => {
    const at = left.indexOf(keyOf(mistake))
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

function keyOf({ module, line }: Mistake): string {
  return `${module}: ${line}`
}
