// The command line of `pnpm start`.
import { parseCommandLine, whole } from '../processes/command-line.ts'

export const help = `pnpm start [--gateways N] [--workers N] [--fresh]

Starts PostgreSQL, Redis, gateways and workers on this machine, and prints where each thing listens. Ctrl-C ends it all.

  --gateways N   how many gateways [1]
  --workers N    how many workers [1]; each hashes as many passwords at a time as there are cores, so that more of them
                 make nothing faster here, and every hash slower: set WORKER_CONCURRENCY with it
  --fresh        deletes what earlier runs left in SPILLWAY_DIR first: accounts, jobs, logs and secrets
  --help         prints this

From the environment:

  PORT           of the first gateway [3000]; the others get the next ones. 0: any free ones
  OPS_PORT       of the first gateway's ops port [9464]; the other gateways and then the workers get the next ones
  DATABASE_URL   the URL of the PostgreSQL server [an embedded server]
  REDIS_URL      the URL of the Redis server [an embedded server]
  SPILLWAY_DIR   where data, logs and secrets are kept [.spillway]

The embedded PostgreSQL listens on port 15432 and Redis on 16379 of the loopback interface, or on any free port where
those are taken. Every other variable reaches the gateways and workers as it is, such as WORKER_CONCURRENCY or LOG_LEVEL
(info, debug or trace).
`

const most = 64

export type StartOptions = ReturnType<typeof parseOptions>

export function parseOptions(args: string[]) {
  const { values } = parseCommandLine('pnpm start', args, {
    gateways: { type: 'string', default: '1' },
    workers: { type: 'string', default: '1' },
    fresh: { type: 'boolean' },
  })
  return {
    gateways: whole('--gateways', values.gateways, { most }),
    workers: whole('--workers', values.workers, { most }),
    fresh: values.fresh === true,
    help: values.help === true,
  }
}
