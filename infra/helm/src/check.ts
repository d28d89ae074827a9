// The first half of `pnpm --filter @spillway/infra check`: fetches what the tests of the chart, the
// Dockerfile and the compose file need.
import { runWithKeeper } from '@spillway/infra/processes/command'
import { buildPrograms, writeSchemas } from './programs.ts'

await runWithKeeper(async () => {
  await buildPrograms('checks', console.log)
  await writeSchemas()
})
