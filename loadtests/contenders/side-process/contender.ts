import type { Contender } from '../contender.ts'
import { startRival } from '../rival.ts'

export const sideProcess: Contender = {
  name: 'side-process',
  title: 'A long-lived side process',
  origin: 'https://haile37.pages.dev/blog/bcrypt-login-bottleneck-kubernetes (its script, kept running)',
  how: 'One process beside the server hashes for it, over an IPC channel, on its own four libuv threads.',
  start: (options) => startRival('side-process', options),
}
