import type { Contender } from '../contender.ts'
import { startRival } from '../rival.ts'

export const inProcess: Contender = {
  name: 'in-process',
  title: 'In the handler',
  origin: 'https://haile37.pages.dev/blog/bcrypt-login-bottleneck-kubernetes (where it started), and most tutorials',
  how: 'The handler awaits the hash; it runs on the four threads libuv keeps for files, names and compression.',
  start: (options) => startRival('in-process', options),
}
