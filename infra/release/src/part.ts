// A part of a release: what makes it, and what comes out.
import { copyFile, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { run } from '@spillway/infra/processes/run'

export interface Release extends Source {
  /** Where its files are put. */
  outdir: string
  keeper: Keeper
  say(sentence: string): void
}

/** The names of its files, or the reason why there are no files, for what cannot be made on every machine. */
export type Made = { files: string[] } | { missing: string }

/** Rejects when something is wrong with what it was to make. */
export type Part = (release: Release) => Promise<Made>

/** What a release is made from: the one version of all that is in it, and a commit. */
interface Source {
  version: string
  commit: string
  /** Of the commit, in seconds since 1970: the time of every file in the release. */
  epoch: number
  /** Whether files differ from the commit. */
  changed: boolean
}

export async function readSource(): Promise<Source> {
  const { version }: { version: string } = JSON.parse(await readFile(join(repositoryDir, 'package.json'), 'utf8'))
  const git = (...args: string[]) => run('git', args, { cwd: repositoryDir })
  const log = await git('log', '-1', '--format=%H %ct').catch((cause: unknown) => {
    throw new UserError('A release is made from a commit: run this in a clone, with git on the PATH.', { cause })
  })
  const [commit = '', epoch = ''] = log.trim().split(' ')
  const changed = (await git('status', '--porcelain')).trim() !== ''
  return { version, commit, epoch: Number(epoch), changed }
}

// The changelog, which is kept by hand. A version that it does not describe is not released.

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
