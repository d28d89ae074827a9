import type { Contender } from '../contender.ts'
import { startRival } from '../rival.ts'

export const piscina: Contender = {
  name: 'piscina',
  title: 'A Piscina pool',
  origin: 'https://johnvesslyalti.xyz/blogs/scaling-nodejs-piscina (DevNest)',
  how: 'A pool of worker threads in the server; the pool queues what its threads have no time for.',
  start: (options) => startRival('piscina', options),
}
