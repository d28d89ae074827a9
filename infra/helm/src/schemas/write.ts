// All schemas that the chart is checked against, written once into the ignored folder.
import { copyFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { programsDir } from '@spillway/local/processes/repository'
import { makeOnce } from '@spillway/local/services/apt-packages'
import { parseAllDocuments } from 'yaml'
import { crdDirs, moduleDir, moduleVersion } from '../programs.ts'
import { customResourceSchemas, kubernetesSchemas } from './kinds.ts'

/** The folder of the schemas for these versions, whether it is there or not. */
export async function schemasDir(): Promise<string> {
  const names = ['k8s.io/kubernetes', 'github.com/kedacore/keda/v2'] as const
  return join(programsDir, `schemas-${(await Promise.all(names.map(moduleVersion))).join('-')}`)
}

/** Writes the schemas unless they are there, and returns their folder. Needs Go on the PATH, to find the modules. */
export async function writeSchemas(): Promise<string> {
  const dir = await schemasDir()
  await makeOnce(dir, writeAll)
  return dir
}

async function writeAll(dir: string): Promise<void> {
  const swagger = join(await moduleDir('k8s.io/kubernetes'), 'api/openapi-spec/swagger.json')
  const documents: unknown[] = []
  for (const source of Object.values(await crdDirs())) {
    for (const file of (await readdir(source)).filter((name) => name.endsWith('.yaml'))) {
      documents.push(...parseAllDocuments(await readFile(join(source, file), 'utf8')).map((one) => one.toJS()))
    }
  }
  const kubernetes = kubernetesSchemas(JSON.parse(await readFile(swagger, 'utf8')))
  for (const [path, schema] of [...kubernetes, ...customResourceSchemas(documents)]) {
    await mkdir(dirname(join(dir, path)), { recursive: true })
    await writeFile(join(dir, path), JSON.stringify(schema))
  }
  const scalers = join(await moduleDir('github.com/kedacore/keda/v2'), 'schema/generated/scalers-schema.json')
  await copyFile(scalers, join(dir, 'scalers.json'))
}
