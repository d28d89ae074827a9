import type { Contender } from '../contender.ts'
import { startRival } from '../rival.ts'

export const threads128: Contender = {
  name: 'threads-128',
  title: 'UV_THREADPOOL_SIZE=128',
  origin: 'https://haile37.pages.dev/blog/bcrypt-login-bottleneck-kubernetes (tried, and not the whole answer)',
  how: 'The same server; libuv keeps 128 threads instead of four, so that up to 128 hashes share the processor.',
  start: (options) => startRival('in-process', options, { UV_THREADPOOL_SIZE: '128' }),
}
