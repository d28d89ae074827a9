// The native engine in the package, for the platform that packs it: where it does not load, and on
// all others, packages hash.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { copyFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PACKED_ADDON } from '../../src/hashing/addon-file.ts'
import type { Bundled } from './licences.ts'

const crate = join(import.meta.dirname, '../../engine')
/** Where cargo's library is put once it has been built. */
export const builtAddon = join(crate, 'spillway.node')

/** Copies it if it is built, which needs cargo. Returns the crates that are linked into it. */
export async function copyEngine(outdir: string): Promise<Bundled[]> {
  if (!existsSync(builtAddon)) return []
  await copyFile(builtAddon, join(outdir, PACKED_ADDON))
  return linkedCrates()
}

interface Crate {
  name: string
  version: string
  license: string
  manifest_path: string
}

/** The crates that are linked into the engine. Expects cargo. */
export function linkedCrates(): Bundled[] {
  const locked = ['--locked', '--features', 'addon']
  const tree = cargo(['tree', ...locked, '--edges', 'normal,no-proc-macro', '--prefix', 'none', '--format', '{p}'])
  const linked = new Set([...tree.matchAll(/^(\S+) v(\S+)$/gm)].map(([, name, version]) => `${name} ${version}`))
  const { packages }: { packages: Crate[] } = JSON.parse(cargo(['metadata', ...locked, '--format-version', '1']))
  return packages
    .filter(({ name, version }) => linked.has(`${name} ${version}`))
    .map(({ name, version, license, manifest_path }) => {
      return { name, version, license, purl: `pkg:cargo/${name}@${version}`, folder: dirname(manifest_path) }
    })
}

function cargo(args: string[]): string {
  return execFileSync('cargo', args, { cwd: crate, encoding: 'utf8', maxBuffer: 2 ** 26 })
}
