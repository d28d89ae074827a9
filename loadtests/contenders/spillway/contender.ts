import { type Contender, coreCount } from '../contender.ts'
import { startSpillway } from './start.ts'

export const spillway: Contender = {
  name: 'spillway',
  title: 'Spillway',
  origin: 'this repository: one gateway, one worker with as many slots as it has cores, Redis',
  how: 'The gateway queues a sealed job; a worker on the same cores hashes; the verdict comes back over Redis.',
  start: ({ cores, services }) =>
    startSpillway({ cores, services, gateways: 1, workers: 1, concurrency: coreCount(cores), testHashes: true }),
}
