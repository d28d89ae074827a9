// An image as an archive in the layout of OCI, without a container engine: the layers of its base, and one with what it adds to them.
// https://github.com/opencontainers/image-spec
import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { UserError } from '@spillway/infra/processes/command-line'
import { defaultStateDir } from '@spillway/infra/processes/repository'
import { run, writeArchive } from '@spillway/infra/processes/run'
import { makeOnce } from '@spillway/infra/services/apt-packages'
import { buildPrograms } from '../../helm/src/programs.ts'
import { type Image, readRecipe } from './follow.ts'

interface Descriptor {
  mediaType: string
  digest: string
  size: number
}

interface Manifest {
  schemaVersion: number
  mediaType?: string
  config: Descriptor
  layers: Descriptor[]
  annotations?: Record<string, string>
}

interface Config {
  created?: string
  config?: { Env?: string[]; [field: string]: unknown }
  rootfs: { type: string; diff_ids: string[] }
  history?: object[]
  [field: string]: unknown
}

export interface OciArchive {
  image: Image
  /** A folder in the layout of OCI that holds the base, and nothing else. */
  base: string
  /** Where the archive is written. */
  file: string
  /** What the image says of itself. */
  annotations: Record<string, string>
  /** The time of all that is added, in seconds since 1970. */
  epoch: number
}

const MANIFEST = 'application/vnd.oci.image.manifest.v1+json'
const CONFIG = 'application/vnd.oci.image.config.v1+json'
const LAYER = 'application/vnd.oci.image.layer.v1.tar+gzip'
const INDEX = 'application/vnd.oci.image.index.v1+json'

/** Writes the archive. The same image on the same base gives the same bytes. Rejects with a UserError for a base of another form. */
export async function writeOciArchive({ image, base, file, annotations, epoch }: OciArchive): Promise<void> {
  const layout = await mkdtemp(join(tmpdir(), 'spillway-oci-'))
  try {
    await mkdir(join(layout, 'blobs/sha256'), { recursive: true })
    const found = await readBase(base)
    for (const { digest } of found.manifest.layers) await copyFile(blob(base, digest), blob(layout, digest))
    const layer = await addLayer(layout, image, epoch)
    const created = new Date(epoch * 1_000).toISOString()
    const config = await addJson(
      layout,
      CONFIG,
      configOf(image, found.config, { diffId: layer.diffId, created, annotations }),
    )
    const layers = [...found.manifest.layers.map(asOci), layer.descriptor]
    const said = { ...annotations, 'org.opencontainers.image.base.digest': found.digest }
    const manifest = { schemaVersion: 2, mediaType: MANIFEST, config, layers, annotations: said }
    const named = { 'org.opencontainers.image.ref.name': annotations['org.opencontainers.image.version'] }
    const described = { ...(await addJson(layout, MANIFEST, manifest)), annotations: named }
    const index = { schemaVersion: 2, mediaType: INDEX, manifests: [described] }
    await writeFile(join(layout, 'index.json'), JSON.stringify(index))
    await writeFile(join(layout, 'oci-layout'), JSON.stringify({ imageLayoutVersion: '1.0.0' }))
    await writeArchive({ file, dir: layout, epoch })
  } finally {
    await rm(layout, { recursive: true })
  }
}

async function readBase(base: string): Promise<{ digest: string; manifest: Manifest; config: Config }> {
  const { manifests }: { manifests: Descriptor[] } = JSON.parse(await readFile(join(base, 'index.json'), 'utf8'))
  const [first, ...others] = manifests
  if (first === undefined || others.length > 0) throw new UserError(`${base} does not hold one image: delete it.`)
  const manifest: Manifest = JSON.parse(await readFile(blob(base, first.digest), 'utf8'))
  if (manifest.layers?.some(({ mediaType }) => !mediaType.endsWith('gzip'))) {
    throw new UserError(`${base} has layers that are not compressed with gzip.`)
  }
  const config: Config = JSON.parse(await readFile(blob(base, manifest.config.digest), 'utf8'))
  return { digest: first.digest, manifest, config }
}

/** Docker's own media type names the same bytes. */
function asOci({ digest, size }: Descriptor): Descriptor {
  return { mediaType: LAYER, digest, size }
}

/** Packs the files of the image into a layer of their own, owned by root as those of the base are. */
async function addLayer(layout: string, image: Image, epoch: number) {
  const tar = join(layout, 'layer.tar')
  await writeArchive({ file: tar, dir: image.root, epoch })
  const diffId = await fileDigest(tar)
  await run('gzip', ['-9', '--no-name', tar])
  const compressed = `${tar}.gz`
  const [digest, { size }] = await Promise.all([fileDigest(compressed), stat(compressed)])
  await rename(compressed, blob(layout, digest))
  return { diffId, descriptor: { mediaType: LAYER, digest, size } }
}

/** How a container of the image is started, on top of what the base says. */
function configOf(
  { env, workdir, uid, gid, entrypoint, cmd, ports }: Image,
  base: Config,
  { diffId, created, annotations }: { diffId: string; created: string; annotations: Record<string, string> },
): Config {
  const ownEnv = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const inherited = (base.config?.Env ?? []).filter((line) => !((line.split('=')[0] ?? '') in env))
  return {
    ...base,
    created,
    config: {
      ...base.config,
      Env: [...inherited, ...ownEnv],
      WorkingDir: workdir,
      User: `${uid}:${gid}`,
      Entrypoint: entrypoint,
      Cmd: cmd,
      Labels: annotations,
      ...(ports.length === 0 ? {} : { ExposedPorts: Object.fromEntries(ports.map((port) => [`${port}/tcp`, {}])) }),
    },
    rootfs: { ...base.rootfs, diff_ids: [...base.rootfs.diff_ids, diffId] },
    history: [...(base.history ?? []), { created, created_by: 'infra/docker/Dockerfile' }],
  }
}

async function addJson(layout: string, mediaType: string, value: object): Promise<Descriptor> {
  const text = JSON.stringify(value)
  const digest = `sha256:${createHash('sha256').update(text).digest('hex')}`
  await writeFile(blob(layout, digest), text)
  return { mediaType, digest, size: Buffer.byteLength(text) }
}

function blob(layout: string, digest: string): string {
  return join(layout, 'blobs', digest.replace(':', '/'))
}

async function fileDigest(file: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(file), hash)
  return `sha256:${hash.digest('hex')}`
}

// The image that ours stand on, fetched from its registry without a container engine, by crane. Needs Go, which builds crane.

/** What registries call the processors of this machine. */
export const architecture = process.arch === 'x64' ? 'amd64' : process.arch

/** The name of the image that both of ours begin with. */
export function baseName(): string {
  const base = readRecipe().find(({ name }) => name === 'runtime')?.base
  if (base === undefined) throw new UserError('The Dockerfile has no stage runtime.')
  return base
}

/** A folder in the layout of OCI with the base for the processors of this machine, kept for the next time. */
export async function fetchBase(say: (sentence: string) => void): Promise<string> {
  const name = baseName()
  const dir = join(defaultStateDir, 'bases', `${name.replace(':', '-')}-${architecture}`)
  const crane = join(await buildPrograms('registry', say), 'crane')
  await makeOnce(dir, (partial) => pullImage(crane, name, partial))
  return dir
}

/** Fetches an image for the processors of this machine into an empty folder, by its name. */
export async function pullImage(crane: string, name: string, dir: string): Promise<void> {
  await run(crane, ['pull', '--format=oci', `--platform=linux/${architecture}`, name, dir])
}

// A container without an engine: an image's command in its folder, as its user, on a file system that takes no writes.

/** Makes every file system of a namespace of its own read-only, then becomes the user. Each program replaces the one before. */
const CONFINE =
  'uid=$1 gid=$2; shift 2; mount -o remount,bind,ro / && exec setpriv --reuid "$uid" --regid "$gid" --clear-groups -- "$@"'

/** Whether this process may do what {@link CONFINE} does. Others run images as the user that they are. */
export const canConfine = process.getuid?.() === 0 && existsSync('/usr/bin/unshare') && existsSync('/usr/bin/setpriv')

/**
 * How a container of an image is started: `args` in the place of the image's command, `env` on top of its environment.
 * The process that is started becomes the container's own, so signals and exit codes are the container's.
 */
export function containerCommand(image: Image, { args = image.cmd, env = {} as NodeJS.ProcessEnv } = {}) {
  const [program = '', ...rest] = [...image.entrypoint, ...args]
  const shared = { cwd: join(image.root, image.workdir), env: { PATH: process.env.PATH, ...image.env, ...env } }
  if (!canConfine) return { ...shared, command: program, args: rest }
  return {
    ...shared,
    command: 'unshare',
    args: ['--mount', 'sh', '-c', CONFINE, 'sh', String(image.uid), String(image.gid), program, ...rest],
  }
}
