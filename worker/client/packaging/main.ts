// Makes the package in dist/package, before `pnpm pack` and `pnpm publish`. Expects worker and
// client to be built.
import { execFileSync } from 'node:child_process'
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join, posix } from 'node:path'
import { bundle, bundledPackages, doors, pageDoor, writeTraced } from './bundle.ts'
import { bundledFile, copyEngine, licencesOf, packagesIn } from './contents.ts'
import published from './manifest.json' with { type: 'json' }

const clientDir = join(import.meta.dirname, '..')
const outdir = join(clientDir, 'dist/package')

await rm(outdir, { recursive: true, force: true })
await mkdir(outdir, { recursive: true })
const metafiles = await bundle(outdir)
for (const door of [...doors, pageDoor]) {
  const options = {
    entry: `${door}.d.ts`,
    peers: Object.keys(published.peerDependencies),
    forCommonJs: door !== pageDoor,
  }
  await copyDeclarations(join(clientDir, 'dist'), outdir, options)
}
const crates = await copyEngine(outdir)
console.log(
  crates.length > 0
    ? `The native engine for ${process.platform}-${process.arch} is in the package.`
    : 'The native engine is not in the package: with cargo, pnpm start builds it.',
)
const bundled = [...(await packagesIn(bundledPackages(metafiles))), ...crates]
await writeTraced(outdir)
await writeFile(join(outdir, 'THIRD-PARTY-LICENSES.txt'), await licencesOf(bundled))
// For the SBOM of a release, beside the package. Renamed into place, because it may be read
// meanwhile.
await writeFile(`${bundledFile}.new`, JSON.stringify(bundled.map(({ folder: _, ...described }) => described)))
await rename(`${bundledFile}.new`, bundledFile)
await writeFile(join(outdir, 'package.json'), `${JSON.stringify(await manifest(), undefined, 2)}\n`)
await copyFile(join(clientDir, '../../LICENSE'), join(outdir, 'LICENSE'))
// Links into the repository would lead nowhere from an installed package: their texts stay.
const readme = await readFile(join(clientDir, 'README.md'), 'utf8')
await writeFile(join(outdir, 'README.md'), readme.replace(/\[([^\]]+)\]\((?!https?:|#)[^)]+\)/g, '$1'))

/**
 * The fields of manifest.json, and those of the workspace. There `typesVersions` is for TypeScript
 * that reads no `exports` (node10); `preferUnplugged`, because Node runs the process beside an
 * application from a file, and not from a zip of Yarn's.
 */
async function manifest(): Promise<object> {
  const read = async (folder: string): Promise<Record<string, Record<string, string>>> =>
    JSON.parse(await readFile(join(clientDir, folder, 'package.json'), 'utf8'))
  const [client, worker, root] = await Promise.all([read('.'), read('..'), read('../..')])
  const { name, version, description, dependencies, devDependencies } = client
  return {
    ...{ name, version, description, license: root.license, engines: root.engines },
    ...published,
    dependencies: { ioredis: dependencies?.ioredis },
    // Workers have version 2 of @node-rs/bcrypt. It is not published for every platform that it
    // names, and yarn then installs nothing of it; nor is `bcrypt` taken, whose install script
    // brings node-gyp with yarn.
    optionalDependencies: {
      '@node-rs/argon2': worker.dependencies?.['@node-rs/argon2'],
      '@node-rs/bcrypt': devDependencies?.['@node-rs/bcrypt'],
    },
    gitHead: commit(),
  }
}

/** Where the package was made from; undefined outside of a clone. */
function commit(): string | undefined {
  try {
    return execFileSync('git', ['rev-parse', 'HEAD'], { cwd: clientDir, stdio: ['ignore', 'pipe', 'ignore'] })
      .toString()
      .trim()
  } catch {
    return undefined
  }
}

// Declarations: of an entry and what that names, for ES modules and for CommonJS.

/** Copies an entry's declarations with all that they import. Throws for packages not in `peers`. */
async function copyDeclarations(
  from: string,
  to: string,
  { entry, peers, forCommonJs }: { entry: string; peers: readonly string[]; forCommonJs: boolean },
): Promise<void> {
  const copied = new Set<string>()

  async function copy(file: string): Promise<void> {
    if (copied.has(file)) return
    copied.add(file)
    const built = await readFile(join(from, file), 'utf8')
    const text = built.replace(/^\/\/# sourceMappingURL=.*\n?/m, '')
    const named = [...text.matchAll(/(?:from |import\()['"]([^'"]+)/g)].map(([, specifier = '']) => specifier)
    const foreign = named.find((specifier) => !specifier.startsWith('.') && !peers.includes(specifier))
    if (foreign !== undefined) throw new Error(`${file} imports ${foreign}: its types would be any to applications`)
    await mkdir(dirname(join(to, file)), { recursive: true })
    await writeFile(join(to, file), text)
    if (forCommonJs) {
      const renamed = text.replace(/(['"])(\.[^'"]+)\.js\1/g, '$1$2.cjs$1')
      await writeFile(join(to, file.replace(/\.d\.ts$/, '.d.cts')), renamed)
    }
    for (const specifier of named.filter((each) => each.startsWith('.')))
      await copy(posix.join(posix.dirname(file), specifier.replace(/\.js$/, '.d.ts')))
  }

  await copy(entry)
}
