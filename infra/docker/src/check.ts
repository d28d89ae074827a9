// The first half of `pnpm check:images`: fetches the linters and builds the images as plain folders, unless they are there.
import { report } from '@spillway/local/processes/user-error'
import { buildImages } from './images.ts'
import { fetchComposeSchema, fetchHadolint } from './linters.ts'

try {
  await Promise.all([fetchHadolint(), fetchComposeSchema()])
  await buildImages(console.log)
} catch (error) {
  report(error)
  process.exitCode = 1
}
