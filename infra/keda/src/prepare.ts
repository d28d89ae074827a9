// The first half of `pnpm --filter @spillway/infra e2e`, which needs a network: images and programs.
// The second half runs in namespaces of its own, without one.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { UserError } from '@spillway/infra/processes/command-line'
import { onPath, run } from '@spillway/infra/processes/run'
import { findRedis } from '@spillway/infra/services/redis'
import { buildImages, docker, images, openDocker } from '../../docker/src/engine.ts'
import { buildPrograms, crdDirs } from '../../helm/src/programs.ts'
import { IMAGES_FILE, outputDir, PAUSE_IMAGE } from './cluster.ts'

const say = console.log

await runWithKeeper(async (keeper) => {
  for (const program of ['containerd', 'runc', 'docker', 'openssl', 'iptables', 'ip', 'unshare'])
    if (onPath([program]) === undefined) throw new UserError(`There is no ${program} on the PATH: install it.`)
  rmSync(outputDir, { recursive: true, force: true })
  mkdirSync(join(outputDir, 'logs'), { recursive: true })
  for (const set of ['checks', 'kubernetes', 'keda'] as const) await buildPrograms(set, say)
  await crdDirs()
  await findRedis({ keeper, dir: outputDir, say })
  await openDocker(keeper)
  await buildImages(say)
  const pause = `FROM ${images.gateway}\nENTRYPOINT ["sleep", "infinity"]\n`
  await run('docker', ['build', '--tag', PAUSE_IMAGE, '-'], { env: process.env, input: pause })
  await docker('save', '--output', IMAGES_FILE, images.gateway, images.worker, PAUSE_IMAGE)
})
