// What is inside, as bills of materials: of each image, without its base, and of the client's package. pnpm lists the packages of npm; what
// is compiled into the client and the engine is added.
import { createHash } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { run } from '@spillway/infra/processes/run'
import { type Bundled, bundledFile } from '../../../worker/client/packaging/licences.ts'
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

// Bills of materials in the form of CycloneDX, and what makes two of the same thing the same text.

/** The parts of a component that are read or changed here. */
export interface Component {
  'bom-ref'?: string
  type: string
  group?: string
  name: string
  version?: string
  purl?: string
  hashes?: object[]
  licenses?: { license?: { id?: string; name?: string }; expression?: string }[]
  externalReferences?: { type: string; url: string; hashes?: object[] }[]
}

export interface Bom {
  serialNumber?: string
  metadata: { timestamp?: string; component?: Component }
  components: Component[]
  dependencies?: { ref: string; dependsOn?: string[] }[]
}

/** The name that a package is installed by. */
export function nameOf({ group, name }: Component): string {
  return group === undefined || group === '' ? name : `${group}/${name}`
}

/** The licence of a component as an SPDX expression, or as what its author wrote; of several entries all apply. */
export function licenceOf({ licenses = [] }: Component): string | undefined {
  const named = licenses.flatMap(({ expression, license }) => expression ?? license?.id ?? license?.name ?? [])
  return named.length === 0 ? undefined : named.join(' AND ')
}

/** Adds components that are not there yet, by their package URL. */
export function withComponents(bom: Bom, added: readonly Component[]): Bom {
  const known = new Set(bom.components.map(({ purl }) => purl))
  return { ...bom, components: [...bom.components, ...added.filter(({ purl }) => !known.has(purl))] }
}

/** A bill of the same thing with these packages alone, by their package URLs, and what they depend on by a bill of more. */
export function billOf({ metadata, ...form }: Bom, all: Bom, packages: readonly string[]): Bom {
  const dependencies = new Map(all.dependencies?.map(({ ref, dependsOn = [] }) => [ref, dependsOn]))
  const found = new Set<string>()
  const left = [...packages]
  for (let ref = left.pop(); ref !== undefined; ref = left.pop()) {
    if (found.has(ref)) continue
    found.add(ref)
    left.push(...(dependencies.get(ref) ?? []))
  }
  const root = metadata.component?.['bom-ref'] ?? ''
  const edges = [...found].map((ref) => ({ ref, dependsOn: dependencies.get(ref) ?? [] }))
  return {
    ...form,
    metadata,
    components: all.components.filter(({ 'bom-ref': ref = '' }) => found.has(ref)),
    dependencies: [{ ref: root, dependsOn: [...packages] }, ...edges],
  }
}

/**
 * The same for the same contents: in the order of names, with the time that is given, a serial number made of the contents, and without the
 * addresses of the registry that this machine installs from. The digests of what was installed stay.
 */
export function reproducible(bom: Bom, epoch: number): Bom {
  const components = bom.components.map(withoutRegistry).toSorted(byRef)
  const dependencies = bom.dependencies?.map(({ ref, dependsOn }) => {
    return dependsOn === undefined ? { ref } : { ref, dependsOn: dependsOn.toSorted() }
  })
  const metadata = { ...bom.metadata, timestamp: new Date(epoch * 1_000).toISOString() }
  const { serialNumber: _, ...rest } = bom
  const sorted = dependencies?.toSorted((a, b) => compare(a.ref, b.ref))
  const contents = { ...rest, metadata, components, ...(sorted === undefined ? {} : { dependencies: sorted }) }
  return { ...contents, serialNumber: serialNumberOf(JSON.stringify(contents)) }
}

function withoutRegistry(component: Component): Component {
  const { externalReferences = [], ...rest } = component
  const distribution = externalReferences.find(({ type }) => type === 'distribution')
  const others = externalReferences.filter((reference) => reference !== distribution)
  return {
    ...rest,
    ...(distribution?.hashes === undefined ? {} : { hashes: distribution.hashes }),
    ...(others.length === 0 ? {} : { externalReferences: others }),
  }
}

/** A UUID of version 8: of no other meaning than its digits. */
function serialNumberOf(text: string): string {
  const digits = createHash('sha256').update(text).digest('hex')
  const parts = [digits.slice(0, 8), digits.slice(8, 12), `8${digits.slice(13, 16)}`, `8${digits.slice(17, 20)}`]
  return `urn:uuid:${[...parts, digits.slice(20, 32)].join('-')}`
}

function byRef(a: Component, b: Component): number {
  return compare(a['bom-ref'] ?? a.name, b['bom-ref'] ?? b.name)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
