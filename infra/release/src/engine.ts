// The native engine as a package of its own, in the form of napi-rs: one for each platform, which package managers install on no other.
import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { writeArchive } from '@spillway/local/processes/archive'
import { repositoryDir } from '@spillway/local/processes/repository'
import { run } from '@spillway/local/processes/run'
import { buildEngine, hasEngine } from '@spillway/local/start/engine'
import { builtAddon, linkedCrates } from '../../../worker/client/packaging/engine.ts'
import { licencesOf } from '../../../worker/client/packaging/licences.ts'
import type { Part, Release } from './part.ts'

const ADDON = 'spillway.node'

export const engine: Part = async (release) => {
  const { keeper, say, outdir, version, epoch } = release
  await buildEngine(keeper, say)
  if (!hasEngine()) return { missing: 'the native engine was not built, which takes cargo' }
  const dir = await mkdtemp(join(tmpdir(), 'spillway-engine-'))
  try {
    const contents = join(dir, 'package')
    await mkdir(contents)
    const manifest = await manifestOf(release)
    await copyFile(builtAddon, join(contents, ADDON))
    await copyFile(join(repositoryDir, 'LICENSE'), join(contents, 'LICENSE'))
    await writeFile(join(contents, 'THIRD-PARTY-LICENSES.txt'), await licencesOf(linkedCrates()))
    await writeFile(join(contents, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`)
    await writeFile(join(contents, 'README.md'), readmeOf(manifest))
    // As npm names tarballs.
    const file = `${manifest.name.slice(1).replace('/', '-')}-${version}.tgz`
    await writeArchive({ file: join(outdir, file), dir, epoch })
    return { files: [file] }
  } finally {
    await rm(dir, { recursive: true })
  }
}

/** For what cargo builds for without a target: the platform that its compiler runs on. */
async function manifestOf({ version }: Release) {
  const { license, engines }: { license: string; engines: object } = JSON.parse(
    await readFile(join(repositoryDir, 'package.json'), 'utf8'),
  )
  const [, triple = ''] = /^host: (.+)$/m.exec(await run('rustc', ['-vV'])) ?? []
  const library = process.platform === 'linux' ? (triple.endsWith('musl') ? 'musl' : 'gnu') : undefined
  return {
    name: ['@spillway/engine', process.platform, process.arch, ...(library === undefined ? [] : [library])].join('-'),
    version,
    description: `The native engine of @spillway/client for ${triple}`,
    license,
    engines,
    main: ADDON,
    os: [process.platform],
    cpu: [process.arch],
    ...(library === undefined ? {} : { libc: [library === 'gnu' ? 'glibc' : 'musl'] }),
  }
}

function readmeOf({ name, description }: { name: string; description: string }): string {
  const use =
    'It hashes several passwords at a time in one thread. Installed beside @spillway/client it is found by itself.'
  return `# ${name}\n\n${description}. ${use}\n`
}
