// Keeps what is compiled as the older version that tests run beside today's (rig/older-version.ts). To be run when a version is
// released: pnpm --filter @spillway/infra run keep-build
import { cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { repositoryDir } from '../processes/repository.ts'
import { writeArchive } from '../processes/run.ts'
import { olderVersionArchive, packageFolders } from './older-version.ts'

/** Programs alone: no declarations, source maps or packed packages. */
const filter = (path: string) => !/\.(d\.c?ts|map|tsbuildinfo)$|dist\/(package|bundled\.json)$/.test(path)

const dir = await mkdtemp(join(tmpdir(), 'spillway-build-'))
for (const [name, folder] of Object.entries(packageFolders)) {
  await cp(join(repositoryDir, folder, 'dist'), join(dir, name, 'dist'), { recursive: true, filter })
  await cp(join(repositoryDir, folder, 'package.json'), join(dir, name, 'package.json'))
}
await writeArchive({ file: olderVersionArchive, dir })
await rm(dir, { recursive: true })
