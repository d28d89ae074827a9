// The command `pnpm check:images`: builds the images as plain folders, and runs all their tests and linters.
import { checkPackage } from '@spillway/helm/check-package'
import { fetchComposeSchema } from './compose-schema.ts'
import { fetchHadolint } from './hadolint.ts'
import { buildImages } from './images.ts'

await checkPackage(new URL('..', import.meta.url), async () => {
  await Promise.all([fetchHadolint(), fetchComposeSchema()])
  await buildImages(console.log)
})
