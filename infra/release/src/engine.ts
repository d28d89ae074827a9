// The native engine as a package of its own, in the form of napi-rs: one for each platform, which package managers install on no other.
import { existsSync } from 'node:fs'
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repositoryDir } from '@spillway/infra/processes/repository'
import { onPath, run, writeArchive } from '@spillway/infra/processes/run'
import { buildEngine, hasEngine } from '@spillway/infra/start/build'
import { builtAddon, linkedCrates } from '../../../worker/client/packaging/engine.ts'
import { licencesOf } from '../../../worker/client/packaging/licences.ts'
import type { Part, Release } from './part.ts'

const ADDON = 'spillway.node'
const crate = join(repositoryDir, 'worker', 'engine')

/** What is built for other platforms than this one, by cargo-zigbuild, which brings their C libraries. The oldest glibc is Debian 10's. */
const CROSS = [
  { target: 'x86_64-unknown-linux-gnu', glibc: '.2.28', arch: 'x64', library: 'gnu' },
  { target: 'x86_64-unknown-linux-musl', glibc: '', arch: 'x64', library: 'musl' },
  { target: 'aarch64-unknown-linux-gnu', glibc: '.2.28', arch: 'arm64', library: 'gnu' },
  { target: 'aarch64-unknown-linux-musl', glibc: '', arch: 'arm64', library: 'musl' },
] as const

interface Platform {
  target: string
  platform: string
  arch: string
  library?: 'gnu' | 'musl' | undefined
}

export const engine: Part = async (release) => {
  const { keeper, say } = release
  await buildEngine(keeper, say)
  if (!hasEngine()) return { missing: 'the native engine was not built, which takes cargo' }
  const own = await ownPlatform()
  const files = [await packageOf(builtAddon, own, release)]
  for (const { glibc, ...other } of CROSS) {
    if (other.target === own.target) continue
    const missing = await whyNot(other.target)
    if (missing !== undefined) say(`The engine is not built for ${other.target}: ${missing}.`)
    else files.push(await packageOf(await crossBuilt(other.target, glibc), { platform: 'linux', ...other }, release))
  }
  return { files }
}

async function packageOf(addon: string, platform: Platform, release: Release): Promise<string> {
  const { outdir, version, epoch } = release
  const dir = await mkdtemp(join(tmpdir(), 'spillway-engine-'))
  try {
    const contents = join(dir, 'package')
    await mkdir(contents)
    const manifest = await manifestOf(platform, version)
    await copyFile(addon, join(contents, ADDON))
    await copyFile(join(repositoryDir, 'LICENSE'), join(contents, 'LICENSE'))
    await writeFile(join(contents, 'THIRD-PARTY-LICENSES.txt'), await licencesOf(linkedCrates()))
    await writeFile(join(contents, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
    await writeFile(join(contents, 'README.md'), readmeOf(manifest))
    // As npm names tarballs.
    const file = `${manifest.name.slice(1).replace('/', '-')}-${version}.tgz`
    await writeArchive({ file: join(outdir, file), dir, epoch })
    return file
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** What cargo builds for without a target: the platform that its compiler runs on. */
async function ownPlatform(): Promise<Platform> {
  const [, target = ''] = /^host: (.+)$/m.exec(await run('rustc', ['-vV'])) ?? []
  const library = process.platform === 'linux' ? (target.endsWith('musl') ? 'musl' : 'gnu') : undefined
  return { target, platform: process.platform, arch: process.arch, library }
}

/** Why nothing can be built for a platform here; undefined where it can. */
async function whyNot(target: string): Promise<string | undefined> {
  if (onPath(['cargo-zigbuild']) === undefined) return 'that takes cargo-zigbuild'
  const folder = await run('rustc', ['--print', 'target-libdir', '--target', target])
  return existsSync(folder.trim()) ? undefined : `that takes its standard library: rustup target add ${target}`
}

/** Builds the addon, as Node loads it: a musl program is linked with the system's C library, not with one of its own. */
async function crossBuilt(target: string, glibc: string): Promise<string> {
  const args = ['zigbuild', '--release', '--locked', '--features', 'addon', '--target', `${target}${glibc}`]
  const manifest = ['--manifest-path', join(crate, 'Cargo.toml'), '--target-dir', join(crate, 'target')]
  await run('env', ['RUSTFLAGS=-Ctarget-feature=-crt-static', 'cargo', ...args, ...manifest])
  return join(crate, 'target', target, 'release', 'libspillway_engine.so')
}

async function manifestOf({ target, platform, arch, library }: Platform, version: string) {
  const { license, engines }: { license: string; engines: object } = JSON.parse(
    await readFile(join(repositoryDir, 'package.json'), 'utf8'),
  )
  return {
    name: ['@spillway/engine', platform, arch, ...(library === undefined ? [] : [library])].join('-'),
    version,
    description: `The native engine of @spillway/client for ${target}`,
    license,
    engines,
    main: ADDON,
    os: [platform],
    cpu: [arch],
    ...(library === undefined ? {} : { libc: [library === 'gnu' ? 'glibc' : 'musl'] }),
  }
}

function readmeOf({ name, description }: { name: string; description: string }): string {
  const use =
    'It hashes several passwords at a time in one thread. Installed beside @spillway/client it is found by itself.'
  return `# ${name}\n\n${description}. ${use}\n`
}
