// The pictures of the READMEs show the pages of today.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { basename } from 'node:path'
import { test } from 'vitest'
import { repositoryDir } from '../../src/processes/repository.ts'
import { digestsBeside, pictures, sourceDigest } from '../support/pictures.ts'

const tracked = execFileSync('git', ['ls-files', '*.png'], { cwd: repositoryDir, encoding: 'utf8' }).trim().split('\n')

test('every picture has the sources of its page, and every page its picture', () => {
  assert.deepEqual(Object.keys(pictures).sort(), tracked.toSorted())
})

test.for(Object.keys(pictures))('%s was taken of the page as it is now', async (picture) => {
  const digests = await digestsBeside(picture)
  assert.equal(
    digests[basename(picture)],
    sourceDigest(picture),
    'take it anew: npx --yes pnpm --filter @spillway/infra pictures, with Chromium on the PATH',
  )
})
