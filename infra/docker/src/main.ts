// The command `pnpm --filter @spillway/infra images`: builds the images as plain folders and prints their sizes.
import { runCommand } from '@spillway/infra/processes/command'
import { run } from '@spillway/infra/processes/run'
import { buildImages } from './images.ts'

await runCommand(async () => {
  const startedAt = Date.now()
  for (const [target, { root, entrypoint, cmd }] of Object.entries(await buildImages(console.log))) {
    const [size] = (await run('du', ['-sh', root])).split('\t')
    console.log(`${target}: ${size} beside its base, in ${root}; runs ${[...entrypoint, ...cmd].join(' ')}`)
  }
  console.log(`${Math.round((Date.now() - startedAt) / 1_000)} s`)
})
