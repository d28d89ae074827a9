import type { Contender } from '../contender.ts'
import { startRival } from '../rival.ts'

export const piscinaCluster: Contender = {
  name: 'piscina-cluster',
  title: 'Piscina and cluster',
  origin: 'https://johnvesslyalti.xyz/blogs/scaling-nodejs-piscina (DevNest)',
  how: 'Copies of the pooled server, one for each processor and at least two, share a port through node:cluster.',
  start: (options) => startRival('piscina-cluster', options),
}
