// Bundles the programs of the package: what applications install has BullMQ and Ajv inside, and none of their dependencies.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type BuildOptions, build, type Metafile } from 'esbuild'

const clientDist = join(import.meta.dirname, '../dist')
const workerDist = join(import.meta.dirname, '../../dist')

const shared: BuildOptions = {
  bundle: true,
  platform: 'node',
  target: 'node20.19',
  format: 'cjs',
  mainFields: ['module', 'main'],
  // In CommonJS `import.meta` is empty, and modules find files beside their own by it.
  define: { 'import.meta.url': '__moduleUrl' },
  banner: { js: "const __moduleUrl = require('node:url').pathToFileURL(__filename).href" },
  legalComments: 'none',
  logLevel: 'error',
}

/** Installed with the package: ioredis opens sockets, so that a fix of it must not wait for a version of ours. */
const dependencies = ['ioredis']
/** What the hashing process needs of these is installed with the package; the rest it does without. */
const hashing = ['@node-rs/argon2', '@node-rs/bcrypt', 'argon2', 'bcrypt']
/** BullMQ does without these. */
const optional = ['msgpackr-extract', 'pg', 'redis']

/**
 * Writes the programs and returns what went into them. The door is CommonJS, and an ES module that names its exports: whichever way it is
 * loaded, there is one of it.
 */
export async function bundle(outdir: string): Promise<Metafile[]> {
  const programs = await Promise.all([
    build({
      ...shared,
      entryPoints: [join(clientDist, 'index.js')],
      external: [...dependencies, ...optional],
      outfile: join(outdir, 'index.cjs'),
      metafile: true,
    }),
    build({
      ...shared,
      entryPoints: [join(workerDist, 'beside.cjs')],
      external: hashing,
      outfile: join(outdir, 'hashing-program.cjs'),
      metafile: true,
    }),
  ])
  const names = Object.keys(await import(join(clientDist, 'index.js')))
  const door = `import door from './index.cjs'\n\nexport const { ${names.join(', ')} } = door\n`
  await writeFile(join(outdir, 'index.js'), door)
  return programs.map(({ metafile }) => metafile)
}

/** The folders of the packages that were bundled. */
export function bundledPackages(metafiles: readonly Metafile[]): string[] {
  const inputs = metafiles.flatMap(({ inputs }) => Object.keys(inputs))
  const folders = inputs.flatMap((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [])
  return [...new Set(folders)].sort()
}
