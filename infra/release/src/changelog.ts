// The changelog, which is kept by hand. A version that it does not describe is not released.
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '@spillway/local/processes/command-line'
import { repositoryDir } from '@spillway/local/processes/repository'
import type { Part } from './part.ts'

export const changelogFile = join(repositoryDir, '.github/CHANGELOG.md')

/** The versions that a text in the form of keepachangelog.com describes, with the days of their release, the latest first. */
export function describedVersions(text: string): { version: string; day: string }[] {
  const headings = text.matchAll(/^## \[(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d)$/gm)
  return [...headings].map(([, version = '', day = '']) => ({ version, day }))
}

export const changelog: Part = async ({ outdir, version }) => {
  const described = describedVersions(await readFile(changelogFile, 'utf8'))
  if (!described.some((one) => one.version === version)) {
    throw new UserError(`.github/CHANGELOG.md says nothing of ${version}: write "## [${version}] - " and the day.`)
  }
  await copyFile(changelogFile, join(outdir, 'CHANGELOG.md'))
  return { files: ['CHANGELOG.md'] }
}
