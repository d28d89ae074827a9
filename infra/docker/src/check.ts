// The first half of `pnpm --filter @spillway/docker check`: fetches the linters and builds the images as plain folders, unless they are there.
import { runCommand } from '@spillway/local/processes/command'
import { buildImages } from './images.ts'
import { fetchComposeSchema, fetchHadolint } from './linters.ts'

await runCommand(async () => {
  await Promise.all([fetchHadolint(), fetchComposeSchema()])
  await buildImages(console.log)
})
