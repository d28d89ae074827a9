// Archives that are the same, byte for byte, whenever and by whomever they are made of the same files. Needs GNU tar and gzip.
import { readdir } from 'node:fs/promises'
import { run } from './run.ts'

export interface Archive {
  /** Where it is written, compressed if this ends in .tgz. */
  file: string
  /** Files are named in it by their path below this folder. */
  dir: string
  /** The files and folders of `dir` that are in it [all]. */
  members?: string[]
  /** Patterns of paths that are left out. */
  exclude?: string[]
  /** The time of all files in it, in seconds since 1970 [0]. */
  epoch?: number
}

/** Owners, times, the order and the writing rights of others differ between checkouts, so the archive keeps no such field. */
export async function writeArchive({ file, dir, members, exclude = [], epoch = 0 }: Archive): Promise<void> {
  const same = ['--sort=name', `--mtime=@${epoch}`, '--owner=0', '--group=0', '--numeric-owner', '--mode=u=rwX,go=rX']
  const compression = file.endsWith('.tgz') ? ['--use-compress-program=gzip -9n'] : []
  const left = exclude.map((pattern) => `--exclude=${pattern}`)
  const names = (members ?? (await readdir(dir))).toSorted()
  await run('tar', [
    '--create',
    '--format=gnu',
    ...same,
    ...compression,
    ...left,
    `--file=${file}`,
    '-C',
    dir,
    ...names,
  ])
}
