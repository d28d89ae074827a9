// A storm in words, for the terminal: sentences, a table, and what to do.
import { advice } from './advice.ts'
import type { StormResult } from './storm.ts'
import { phases, sentences, table } from './words.ts'

const WIDTH = 100
const COLUMN = 13

export function inWords(result: StormResult): string {
  const todo = advice(result).flatMap(({ text, code = [], more }) => [
    ...wrapped(text),
    ...code.map((line) => `    ${line}`),
    ...(more === undefined ? [] : [`See: ${more}`]),
    '',
  ])
  const said = sentences(result).flatMap((sentence) => [...wrapped(sentence), ''])
  const lines = [...said, ...drawn(result), ...(todo.length > 0 ? ['What to do', '', ...todo] : [])]
  return lines.join('\n').trimEnd()
}

function drawn(result: StormResult): string[] {
  const { columns, rows } = table(result)
  if (rows.length === 0) return []
  const width = Math.max(...rows.map(({ name }) => name.length)) + 1
  const line = (name: string, cells: readonly string[]) =>
    `${name.padEnd(width)}${cells.map((cell) => cell.padStart(COLUMN)).join('')}`
  const heads = phases.map((phase) => phase.padStart(COLUMN * (columns.length / phases.length)))
  return [line('', heads), line('', columns), ...rows.map(({ name, cells }) => line(name, cells)), '']
}

function wrapped(text: string): string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const longer = `${lines.at(-1) ?? ''} ${word}`
    if (lines.length > 0 && longer.length <= WIDTH) lines[lines.length - 1] = longer
    else lines.push(word)
  }
  return lines
}
