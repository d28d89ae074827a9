// survivors.txt: the mistakes that the tests do not notice, each under the reason why it may stand.
import { readFileSync } from 'node:fs'

export interface Mistake {
  module: string
  /** The line as the mistake leaves it, without its indentation; of several lines the first. */
  line: string
}

/** Reads lines of `module: line`; what begins with a number sign is a reason, and what comes before the first one says what this is. */
export function readSurvivors(): Mistake[] {
  const [, ...reasons] = readFileSync(new URL('../survivors.txt', import.meta.url), 'utf8').split(/^# .*\n/m)
  return reasons.flatMap((mistakes) =>
    mistakes
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => {
        const colon = line.indexOf(': ')
        return { module: line.slice(0, colon), line: line.slice(colon + 2) }
      }),
  )
}
