// The floor: bare parts that do what a login cannot do without (measure/floor-program.ts), on the services of a system.
import { randomBytes } from 'node:crypto'
import type { Keeper } from '@spillway/local/processes/keeper'
import { startProcess } from '@spillway/local/rig'
import { createApiClient } from '@spillway/local/rig/api-client'
import { compiled } from '../contenders/program.ts'
import type { CostSystem } from './system.ts'

/** It can log in and answer /healthz; the system's services stay the caller's. */
export async function openFloor(keeper: Keeper, beside: CostSystem): Promise<CostSystem> {
  const { databaseUrl, redisUrl } = beside.services
  const entry = compiled('measure/floor-program')
  const prefix = `{floor-${randomBytes(6).toString('hex')}}`
  const start = (role: string) => startProcess({ entry, keeper, args: [role, databaseUrl, redisUrl, prefix] })
  const [gateway, worker] = [start('gateway'), start('worker')]
  const close = async () => void (await Promise.all([gateway.close(), worker.close()]))
  try {
    const { msg: url = '' } = await gateway.waitForLog(({ msg = '' }) => msg.startsWith('http'))
    await worker.waitForLog(({ msg }) => msg === 'ready')
    const parts = [
      { role: 'gateway', pid: gateway.pid },
      { role: 'worker', pid: worker.pid },
    ]
    return { ...beside, api: createApiClient(url), parts, close }
  } catch (error) {
    await close()
    throw error
  }
}
