// The unpacked sources of Go modules that carry the schemas and custom resources that the chart is checked against.
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { run } from '@spillway/local/processes/run'

/** The pin of each module's version: by the programs that are built from it, or here. */
const modules = {
  'k8s.io/kubernetes': { pinnedBy: 'kubernetes' },
  'github.com/kedacore/keda/v2': { pinnedBy: 'keda' },
  'github.com/prometheus-operator/prometheus-operator': { version: 'v0.85.0' },
  'sigs.k8s.io/gateway-api': { version: 'v1.6.3' },
  'github.com/compose-spec/compose-go/v2': { version: 'v2.16.2' },
} as const

export type ModuleName = keyof typeof modules

/** The version that is used of a module. */
export async function moduleVersion(name: ModuleName): Promise<string> {
  const pin = modules[name]
  if ('version' in pin) return pin.version
  const goMod = fileURLToPath(new URL(`../programs/${pin.pinnedBy}/go.mod`, import.meta.url))
  const lines = (await readFile(goMod, 'utf8')).split('\n').map((line) => line.replace('require', '').trim().split(' '))
  const version = lines.find(([module]) => module === name)?.[1]
  if (version === undefined) throw new Error(`${goMod} does not require ${name}`)
  return version
}

/** The folder of a module in Go's cache, fetched into it where need be. Needs Go on the PATH. */
export async function moduleDir(name: ModuleName): Promise<string> {
  const args = ['mod', 'download', '-json', `${name}@${await moduleVersion(name)}`]
  const found: { Dir?: string } = JSON.parse(await run('go', args, { cwd: '/' }))
  if (found.Dir === undefined) throw new Error(`go mod download gave no folder for ${name}`)
  return found.Dir
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
