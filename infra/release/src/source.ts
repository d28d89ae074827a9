// What a release is made from: the one version of all that is in it, and a commit.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { UserError } from '@spillway/local/processes/command-line'
import { repositoryDir } from '@spillway/local/processes/repository'
import { run } from '@spillway/local/processes/run'

export interface Source {
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
