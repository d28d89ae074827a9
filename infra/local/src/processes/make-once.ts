// Makes folders that several runs share.
import { existsSync } from 'node:fs'
import { chmod, mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'

/**
 * Makes a folder unless it is there. It is filled under another name and renamed: if two runs make it at once, one wins, and neither sees an
 * incomplete one.
 */
export async function makeOnce(dir: string, fill: (partial: string) => Promise<unknown>): Promise<void> {
  if (existsSync(dir)) return
  await mkdir(dirname(dir), { recursive: true })
  const partial = await mkdtemp(`${dir}.partial-`)
  try {
    await fill(partial)
    // Other users may enter it.
    await chmod(partial, 0o755)
    await rename(partial, dir).catch((error: unknown) => {
      if (!existsSync(dir)) throw error
    })
  } finally {
    await rm(partial, { recursive: true, force: true })
  }
}
