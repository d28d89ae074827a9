// Makes the package in dist/package, before `pnpm pack` and `pnpm publish`. Expects worker and
// client to be built.
import { execFileSync } from 'node:child_process'
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundle, bundledPackages, doors, pageDoor, writeTraced } from './bundle.ts'
import { copyDeclarations } from './declarations.ts'
import { copyEngine } from './engine.ts'
import { bundledFile, licencesOf, packagesIn } from './licences.ts'
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
