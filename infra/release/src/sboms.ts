// What is inside, as bills of materials: of each image, without its base, and of the client's package. pnpm lists the packages of npm; what
// is compiled into the client and the engine is added.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repositoryDir } from '@spillway/local/processes/repository'
import { run } from '@spillway/local/processes/run'
import { type Bundled, bundledFile } from '../../../worker/client/packaging/licences.ts'
import { type Bom, billOf, type Component, reproducible, withComponents } from './cyclonedx.ts'
import type { Part } from './part.ts'

type Compiled = Omit<Bundled, 'folder'>

/** What has one, and what of all that is compiled into the client is in it. */
const subjects = [
  { name: 'gateway', list: () => installedWith('@spillway/api'), holds: () => false },
  { name: 'worker', list: () => installedWith('@spillway/worker'), holds: isCrate },
  { name: 'client', list: installedWithClient, holds: () => true },
]

const fileOf = (subject: string): string => `${subject}.cdx.json`
export const sbomFiles = subjects.map(({ name }) => fileOf(name))

/** The client must have been packed. */
export const sboms: Part = async ({ outdir, version, epoch }) => {
  const compiled: Compiled[] = JSON.parse(await readFile(bundledFile, 'utf8'))
  const client = join(outdir, `spillway-client-${version}.tgz`)
  for (const { name, list, holds } of subjects) {
    const bom = withComponents(await list(client), compiled.filter(holds).map(asComponent))
    await writeFile(join(outdir, fileOf(name)), `${JSON.stringify(reproducible(bom, epoch), undefined, 2)}\n`)
  }
  return { files: sbomFiles }
}

function installedWith(name: string): Promise<Bom> {
  return listed(['--prod', '--filter', name])
}

/** What the packed client is installed with is less than what it is bundled from, and more: the packages that hash. */
async function installedWithClient(tarball: string): Promise<Bom> {
  const packed = await run('tar', ['--extract', '--to-stdout', '--file', tarball, 'package/package.json'])
  const manifest: Record<'dependencies' | 'optionalDependencies', object> = JSON.parse(packed)
  const wanted = Object.entries({ ...manifest.dependencies, ...manifest.optionalDependencies })
  const packages = wanted.map(([name, version]) => `pkg:npm/${name.replace('@', '%40')}@${version}`)
  return billOf(await installedWith('@spillway/client'), await listed([]), packages)
}

async function listed(options: string[]): Promise<Bom> {
  const dir = await mkdtemp(join(tmpdir(), 'spillway-sbom-'))
  try {
    const out = join(dir, 'bom.json')
    const format = ['--sbom-format', 'cyclonedx', '--sbom-spec-version', '1.6', '--sbom-type', 'application']
    await run('npx', ['--yes', 'pnpm', 'sbom', ...options, ...format, '--out', out], { cwd: repositoryDir })
    return JSON.parse(await readFile(out, 'utf8'))
  } finally {
    await rm(dir, { recursive: true })
  }
}

function isCrate({ purl }: Compiled): boolean {
  return purl.startsWith('pkg:cargo/')
}

function asComponent({ name, version, license, purl }: Compiled): Component {
  return { type: 'library', 'bom-ref': purl, name, version, purl, licenses: [{ expression: license }] }
}
