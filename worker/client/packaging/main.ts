// Makes the package in dist/package, before `pnpm pack` and `pnpm publish`. Expects worker and
// client to be built.
import { copyFile, mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { bundle, bundledPackages, doors, pageDoor, peers, writeTraced } from './bundle.ts'
import { copyDeclarations } from './declarations.ts'
import { copyEngine } from './engine.ts'
import { bundledFile, licencesOf, packagesIn } from './licences.ts'
import { packageManifest } from './manifest.ts'

const clientDir = join(import.meta.dirname, '..')
const outdir = join(clientDir, 'dist/package')

await rm(outdir, { recursive: true, force: true })
await mkdir(outdir, { recursive: true })
const metafiles = await bundle(outdir)
for (const door of [...doors, pageDoor]) {
  const options = { entry: `${door}.d.ts`, peers: Object.keys(peers), forCommonJs: door !== pageDoor }
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
await writeFile(join(outdir, 'package.json'), `${JSON.stringify(packageManifest(), undefined, 2)}\n`)
await copyFile(join(clientDir, '../../LICENSE'), join(outdir, 'LICENSE'))
// Links into the repository would lead nowhere from an installed package: their texts stay.
const readme = await readFile(join(clientDir, 'README.md'), 'utf8')
await writeFile(join(outdir, 'README.md'), readme.replace(/\[([^\]]+)\]\((?!https?:|#)[^)]+\)/g, '$1'))
