// The command `pnpm images`: builds the images as plain folders and says how large they are.
import { execFileSync } from 'node:child_process'
import { report } from '@spillway/local/processes/user-error'
import { buildImages, targets } from './images.ts'

try {
  const startedAt = Date.now()
  const images = await buildImages(console.log)
  for (const target of targets) {
    const { root, entrypoint, cmd } = images[target]
    const [size] = execFileSync('du', ['-sh', root], { encoding: 'utf8' }).split('\t')
    console.log(`${target}: ${size} beside its base, in ${root}; runs ${[...entrypoint, ...cmd].join(' ')}`)
  }
  console.log(`${Math.round((Date.now() - startedAt) / 1_000)} s`)
} catch (error) {
  report(error)
  process.exitCode = 1
}
