import type { Contender } from '../contender.ts'
import { startRival } from '../rival.ts'

/** Each waiting caller is a Node process of about 45 MB. */
const MOST_CALLERS = 200

export const scriptPerCompare: Contender = {
  name: 'script-per-compare',
  title: 'A script for each compare',
  origin: 'https://haile37.pages.dev/blog/bcrypt-login-bottleneck-kubernetes (the fix its author shipped)',
  how: 'Each hash starts a process of its own, which ends with the answer.',
  refuses: (callers) =>
    callers <= MOST_CALLERS
      ? undefined
      : `${callers.toLocaleString('en')} callers would be as many processes at once, more than the machine's memory holds`,
  start: (options) => startRival('script-per-compare', options),
}
