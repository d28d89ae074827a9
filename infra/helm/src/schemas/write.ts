// All schemas that the chart is checked against, written once into the ignored folder.
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { programsDir } from '@spillway/local/processes/repository'
import { parseAllDocuments } from 'yaml'
import { crdDirs, moduleDir, moduleVersion } from '../modules.ts'
import { customResourceSchemas, kubernetesSchemas } from './kinds.ts'

/** The folder of the schemas for these versions, whether it is there or not. */
export async function schemasDir(): Promise<string> {
  const names = ['k8s.io/kubernetes', 'github.com/kedacore/keda/v2'] as const
  return join(programsDir, `schemas-${(await Promise.all(names.map(moduleVersion))).join('-')}`)
}

/** Writes the schemas unless they are there, and returns their folder. Needs Go on the PATH, to find the modules. */
export async function writeSchemas(): Promise<string> {
  const dir = await schemasDir()
  if (existsSync(dir)) return dir
  const swagger = join(await moduleDir('k8s.io/kubernetes'), 'api/openapi-spec/swagger.json')
  const documents: unknown[] = []
  for (const source of Object.values(await crdDirs())) {
    for (const file of (await readdir(source)).filter((name) => name.endsWith('.yaml'))) {
      documents.push(...parseAllDocuments(await readFile(join(source, file), 'utf8')).map((one) => one.toJS()))
    }
  }
  const schemas = new Map([
    ...kubernetesSchemas(JSON.parse(await readFile(swagger, 'utf8'))),
    ...customResourceSchemas(documents),
  ])
  const partial = `${dir}.${process.pid}.partial`
  for (const [path, schema] of schemas) {
    await mkdir(dirname(join(partial, path)), { recursive: true })
    await writeFile(join(partial, path), JSON.stringify(schema))
  }
  const scalers = join(await moduleDir('github.com/kedacore/keda/v2'), 'schema/generated/scalers-schema.json')
  await writeFile(join(partial, 'scalers.json'), await readFile(scalers))
  await rename(partial, dir).catch(async (error: unknown) => {
    await rm(partial, { recursive: true, force: true })
    if (!existsSync(dir)) throw error
  })
  return dir
}
