import { randomBytes } from 'node:crypto'
import { type Contender, coreCount } from '../contender.ts'
import { compiled, startProgram } from '../program.ts'
import { startRival } from '../rival.ts'

/** One for each processor, and at least two, since one would leave nothing to take in turn. */
const LEAST_WORKERS = 2

export const httpWorkers: Contender = {
  name: 'http-workers',
  title: 'HTTP workers',
  origin: 'https://github.com/eugenioenko/autentico/pull/299 (Verifico; never merged)',
  how: 'The server posts each verify to a list of workers in turn, five seconds each, then hashes locally.',
  async start(options) {
    const env = { SHARED_SECRET: randomBytes(32).toString('hex') }
    const started: { close(): Promise<void> }[] = []
    const closeAll = async () => {
      await Promise.all(started.map((program) => program.close()))
    }
    try {
      const workers = await Promise.all(
        Array.from({ length: Math.max(LEAST_WORKERS, coreCount(options.cores)) }, async () => {
          const worker = await startProgram({
            path: compiled('contenders/http-workers/worker'),
            cores: options.cores,
            env,
          })
          started.push(worker)
          return worker
        }),
      )
      const urls = workers.map((worker) => String(worker.ready.url)).join(',')
      const server = await startRival('http-workers', options, { ...env, WORKERS: urls })
      started.push(server)
      const parts = [...server.parts, ...workers.map((worker) => ({ role: 'worker', pid: worker.pid }))]
      return { ...server, parts, close: closeAll }
    } catch (error) {
      await closeAll()
      throw error
    }
  },
}
