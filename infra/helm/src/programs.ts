// Programs built from their Go modules, at the versions and checksums that the folders in programs/
// pin, into the ignored folder. The first build takes minutes and gigabytes; later runs use its
// result.
import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UserError } from '@spillway/infra/processes/command-line'
import { programsDir } from '@spillway/infra/processes/repository'
import { run } from '@spillway/infra/processes/run'
import { makeOnce } from '@spillway/infra/services/apt-packages'

/** The folders in programs/: each is a Go module whose tools are built. */
type ProgramSet = 'checks' | 'kubernetes' | 'keda'

const setsDir = fileURLToPath(new URL('../programs', import.meta.url))

/** The folder of a set's programs, built or not. Other versions have another folder. */
export async function programSetDir(set: ProgramSet): Promise<string> {
  const pins = ['go.mod', 'go.sum'].map((file) => join(setsDir, set, file))
  return join(programsDir, `go-${set}-${await fingerprint(pins)}`)
}

async function fingerprint(files: readonly string[]): Promise<string> {
  const contents = await Promise.all(files.map((file) => readFile(file, 'utf8')))
  return createHash('sha256').update(contents.join('\0')).digest('hex').slice(0, 12)
}

export async function isBuilt(set: ProgramSet): Promise<boolean> {
  return existsSync(await programSetDir(set))
}

/**
 * Returns the folder of a set's programs, and builds them first where needed. `say` prints when
 * that takes long. Rejects with a UserError when there is no Go.
 */
export async function buildPrograms(set: ProgramSet, say: (sentence: string) => void): Promise<string> {
  const dir = await programSetDir(set)
  if (existsSync(dir)) return dir
  const startedAt = Date.now()
  await run('go', ['version']).catch((cause: unknown) => {
    throw new UserError('Go 1.26 or newer is needed to build the programs that this runs: install it and try again.', {
      cause,
    })
  })
  say(`Building the ${set} programs from their Go modules: minutes at the first time ...`)
  const flags = ['-trimpath', `-ldflags=-s -w ${await versionStamp(set)}`]
  await makeOnce(dir, (partial) =>
    run('go', ['build', ...flags, '-o', `${partial}/`, 'tool'], { cwd: join(setsDir, set) }),
  )
  say(`Built the ${set} programs in ${Math.round((Date.now() - startedAt) / 1_000)} s.`)
  return dir
}

/** Charts ask for the version of Kubernetes; its own build scripts set it in this way, too. */
async function versionStamp(set: ProgramSet): Promise<string> {
  if (set !== 'kubernetes') return ''
  const version = await moduleVersion('k8s.io/kubernetes')
  const [major = '', minor = ''] = version.slice(1).split('.')
  const values = { gitVersion: version, gitMajor: major, gitMinor: minor }
  return Object.entries(values)
    .map(([name, value]) => `-X k8s.io/component-base/version.${name}=${value}`)
    .join(' ')
}

// The unpacked sources of Go modules that carry the schemas and custom resources that the chart is
// checked against.

/** The pin of each module's version: by the programs that are built from it, or here. */
const modules = {
  'k8s.io/kubernetes': { pinnedBy: 'kubernetes' },
  'github.com/yannh/kubeconform': { pinnedBy: 'checks' },
  'github.com/kedacore/keda/v2': { pinnedBy: 'keda' },
  'github.com/prometheus-operator/prometheus-operator': { version: 'v0.85.0' },
  'sigs.k8s.io/gateway-api': { version: 'v1.6.3' },
  'github.com/compose-spec/compose-go/v2': { version: 'v2.16.2' },
} as const

type ModuleName = keyof typeof modules

async function moduleVersion(name: ModuleName): Promise<string> {
  const pin = modules[name]
  if ('version' in pin) return pin.version
  const goMod = fileURLToPath(new URL(`../programs/${pin.pinnedBy}/go.mod`, import.meta.url))
  const lines = (await readFile(goMod, 'utf8')).split('\n').map((line) => line.replace('require', '').trim().split(' '))
  const version = lines.find(([module]) => module === name)?.[1]
  if (version === undefined) throw new Error(`${goMod} does not require ${name}`)
  return version
}

/** The folder of a module in Go's cache, fetched into it where need be. Needs Go on the PATH. */
async function moduleDir(name: ModuleName): Promise<string> {
  const args = ['mod', 'download', '-json', `${name}@${await moduleVersion(name)}`]
  const found: { Dir?: string } = JSON.parse(await run('go', args, { cwd: '/' }))
  if (found.Dir === undefined) throw new Error(`go mod download gave no folder for ${name}`)
  return found.Dir
}

/** KEDA's own configuration of its admission webhooks. */
export async function kedaWebhooksFile(): Promise<string> {
  return join(await moduleDir('github.com/kedacore/keda/v2'), 'config/webhooks/validation_webhooks.yaml')
}

/** The folders of a module that hold its custom resource definitions. */
export async function crdDirs(): Promise<Record<'keda' | 'monitoring' | 'gateway', string>> {
  const [keda, monitoring, gateway] = await Promise.all([
    moduleDir('github.com/kedacore/keda/v2'),
    moduleDir('github.com/prometheus-operator/prometheus-operator'),
    moduleDir('sigs.k8s.io/gateway-api'),
  ])
  return {
    keda: join(keda, 'config/crd/bases'),
    monitoring: join(monitoring, 'example/prometheus-operator-crd'),
    gateway: join(gateway, 'config/crd/standard'),
  }
}

// Packages of Python, and the schemas that the chart and the compose file are checked against, in
// the ignored folder.

const requirements = fileURLToPath(new URL('../programs/requirements.txt', import.meta.url))
const pins = await fingerprint([requirements])
const pythonDir = join(programsDir, `python-${pins}`)
/** The linter of Dockerfiles. */
export const hadolint = join(pythonDir, 'bin/hadolint')

/** The folder of all schemas, whether it is there or not. */
export async function schemasDir(): Promise<string> {
  const names = ['k8s.io/kubernetes', 'github.com/kedacore/keda/v2'] as const
  return join(programsDir, `schemas-${[...(await Promise.all(names.map(moduleVersion))), pins].join('-')}`)
}

/** The options by which kubeconform finds them: Kubernetes' own kinds, and custom resources. */
export function schemaLocations(dir: string): string[] {
  const kinds = `${dir}/kubernetes/{{ .ResourceKind }}{{ .KindSuffix }}.json`
  const customResources = `${dir}/{{ .Group }}_{{ .ResourceKind }}_{{ .ResourceAPIVersion }}.json`
  return ['-schema-location', kinds, '-schema-location', customResources]
}

/** Installs the packages and writes the schemas, once. Needs Go, and Python with pip and PyYAML. */
export async function writeSchemas(): Promise<void> {
  const options = ['--quiet', '--no-deps', '--require-hashes', '--requirement', requirements]
  await makeOnce(pythonDir, (partial) => run('python3', ['-m', 'pip', 'install', ...options, '--target', partial]))
  await makeOnce(await schemasDir(), async (dir) => {
    const kinds = join(pythonDir, 'kubernetes_validate/kubernetes-json-schema/v1.36.0-local-strict')
    await mkdir(join(dir, 'kubernetes'))
    for (const name of await readdir(kinds)) {
      // References between files by their names, as kubeconform resolves them.
      const { $id: _, ...schema } = JSON.parse(await readFile(join(kinds, name), 'utf8'))
      const text = JSON.stringify(schema).replaceAll('"/api/_definitions.json', '"_definitions.json')
      await writeFile(join(dir, 'kubernetes', name), text)
    }
    const script = join(await moduleDir('github.com/yannh/kubeconform'), 'scripts/openapi2jsonschema.py')
    const folders = Object.values(await crdDirs())
    const files = await Promise.all(
      folders.map(async (folder) => (await readdir(folder)).filter(isYaml).map((name) => join(folder, name))),
    )
    const env = {
      ...process.env,
      FILENAME_FORMAT: '{fullgroup}_{kind}_{version}',
      DENY_ROOT_ADDITIONAL_PROPERTIES: 'true',
    }
    await run('python3', [script, ...files.flat()], { cwd: dir, env })
    const keda = await moduleDir('github.com/kedacore/keda/v2')
    await copyFile(join(keda, 'schema/generated/scalers-schema.json'), join(dir, 'scalers.json'))
    const compose = await moduleDir('github.com/compose-spec/compose-go/v2')
    await copyFile(join(compose, 'schema/compose-spec.json'), join(dir, 'compose-spec.json'))
  })
}

function isYaml(name: string): boolean {
  return name.endsWith('.yaml')
}
