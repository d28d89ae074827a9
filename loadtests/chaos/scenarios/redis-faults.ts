// The faults of Redis: each breaks a server and mends it again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { RedisServer } from '../stage/stage.ts'

export interface RedisFault {
  name: string
  /** The end of a sentence that starts with Redis's name. */
  what: string
  /** Resolves when it is mended. */
  inject(server: RedisServer): Promise<void>
}

const AWAY_MS = 2_000
const PAUSE_MS = 5_000
const REFUSING_MS = 3_000
const CUTS = 10

export const cut: RedisFault = {
  name: 'cut',
  what: 'cuts every connection ten times (CLIENT KILL)',
  async inject(server) {
    for (let time = 0; time < CUTS; time++) {
      for (const type of ['normal', 'pubsub']) await server.command('CLIENT', 'KILL', 'TYPE', type)
      await sleep(REFUSING_MS / CUTS)
    }
  },
}

export const redisFaults: readonly RedisFault[] = [
  {
    name: 'killed',
    what: 'is killed and restarted from its append-only file',
    async inject(server) {
      await server.kill()
      await sleep(AWAY_MS)
      await server.start()
    },
  },
  {
    name: 'paused',
    what: 'answers nothing for 5 s (CLIENT PAUSE)',
    async inject(server) {
      await server.command('CLIENT', 'PAUSE', PAUSE_MS, 'ALL')
      await sleep(PAUSE_MS)
    },
  },
  {
    name: 'frozen',
    what: 'is stopped for 5 s (SIGSTOP)',
    async inject(server) {
      server.signal('SIGSTOP')
      await sleep(PAUSE_MS)
      server.signal('SIGCONT')
    },
  },
  {
    name: 'read-only',
    what: 'takes no writes for 3 s',
    async inject(server) {
      // As a replica does.
      await server.command('REPLICAOF', '127.0.0.1', 1)
      await sleep(REFUSING_MS)
      await server.command('REPLICAOF', 'NO', 'ONE')
    },
  },
  {
    name: 'full',
    what: 'is full for 3 s (maxmemory, noeviction)',
    async inject(server) {
      await server.command('CONFIG', 'SET', 'maxmemory', 1)
      await sleep(REFUSING_MS)
      await server.command('CONFIG', 'SET', 'maxmemory', 0)
    },
  },
  cut,
]
