// An image put together without a container engine, on a base made here, as the specification of OCI reads it.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdir, readdir, readFile, symlink, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { gunzipSync, gzipSync } from 'node:zlib'
import { openKeeper, stopOrder } from '@spillway/infra/processes/keeper'
import { run } from '@spillway/infra/processes/run'
import { freePort, scratchDir, until } from '@spillway/infra/rig'
import { test } from 'vitest'
import { isBuilt, programSetDir } from '../../../helm/src/programs.ts'
import type { Image } from '../../src/follow.ts'
import { architecture, pullImage, writeOciArchive } from '../../src/oci.ts'

const DOCKER_LAYER = 'application/vnd.docker.image.rootfs.diff.tar.gzip'
const sha256 = (data: string | Buffer) => `sha256:${createHash('sha256').update(data).digest('hex')}`

interface Descriptor {
  mediaType: string
  digest: string
  size: number
}

/** A base of one layer, as a registry may give it: with Docker's media types. */
async function writeBase(dir: string): Promise<{ layer: string; diffId: string }> {
  await mkdir(join(dir, 'blobs/sha256'), { recursive: true })
  const add = async (mediaType: string, data: string | Buffer): Promise<Descriptor> => {
    const digest = sha256(data)
    await writeFile(join(dir, 'blobs', digest.replace(':', '/')), data)
    return { mediaType, digest, size: Buffer.byteLength(data) }
  }
  const tar = Buffer.alloc(10_240)
  const layer = await add(DOCKER_LAYER, gzipSync(tar))
  const config = await add(
    'application/vnd.docker.container.image.v1+json',
    JSON.stringify({
      architecture,
      os: 'linux',
      config: { Env: ['PATH=/usr/bin', 'NODE_ENV=development'], Cmd: ['node'] },
      rootfs: { type: 'layers', diff_ids: [sha256(tar)] },
      history: [{ created_by: 'base' }],
    }),
  )
  const mediaType = 'application/vnd.docker.distribution.manifest.v2+json'
  const manifest = await add(mediaType, JSON.stringify({ schemaVersion: 2, mediaType, config, layers: [layer] }))
  await writeFile(join(dir, 'index.json'), JSON.stringify({ schemaVersion: 2, manifests: [manifest] }))
  return { layer: layer.digest, diffId: sha256(tar) }
}

async function writeImage(root: string): Promise<Image> {
  await mkdir(join(root, 'app/dist'), { recursive: true })
  await writeFile(join(root, 'app/dist/main.js'), 'console.log(1)')
  await symlink('dist/main.js', join(root, 'app/start.js'))
  const start = { entrypoint: ['node'], cmd: ['dist/main.js'], ports: ['3000'] }
  return { root, env: { NODE_ENV: 'production' }, workdir: '/app', uid: 1000, gid: 1000, ...start }
}

test('an image has the layers of its base and one of its own, and starts as its Dockerfile says', async (t) => {
  const dir = await scratchDir(t)
  const base = join(dir, 'base')
  const { layer, diffId } = await writeBase(base)
  const image = await writeImage(join(dir, 'root'))
  const annotations = { 'org.opencontainers.image.version': '1.2.3' }
  const [file, again] = [join(dir, 'first.tar'), join(dir, 'second.tar')]
  await writeOciArchive({ image, base, file, annotations, epoch: 1_000 })
  // Built again, files have other times.
  await utimes(join(image.root, 'app/dist/main.js'), 5, 5)
  await writeOciArchive({ image, base, file: again, annotations, epoch: 1_000 })
  assert.ok((await readFile(file)).equals(await readFile(again)), 'the same image gives other bytes')

  const layout = join(dir, 'layout')
  await mkdir(layout)
  execFileSync('tar', ['--extract', '--file', file, '-C', layout])
  const blob = (digest: string) => readFile(join(layout, 'blobs', digest.replace(':', '/')))
  for (const name of await readdir(join(layout, 'blobs/sha256')))
    assert.equal(sha256(await blob(`sha256:${name}`)), `sha256:${name}`)
  assert.deepEqual(JSON.parse(await readFile(join(layout, 'oci-layout'), 'utf8')), { imageLayoutVersion: '1.0.0' })
  const index = JSON.parse(await readFile(join(layout, 'index.json'), 'utf8'))
  assert.equal(index.manifests[0].annotations['org.opencontainers.image.ref.name'], '1.2.3')
  const manifest = JSON.parse((await blob(index.manifests[0].digest)).toString())
  assert.equal(
    manifest.annotations['org.opencontainers.image.base.digest'],
    JSON.parse(await readFile(join(base, 'index.json'), 'utf8')).manifests[0].digest,
  )
  assert.equal(manifest.layers.length, 2)
  assert.equal(manifest.layers[0].digest, layer)
  for (const one of [index.manifests[0], manifest.config, ...manifest.layers]) {
    assert.match(one.mediaType, /^application\/vnd\.oci\.image\./)
    assert.equal(one.size, (await blob(one.digest)).length)
  }

  const config = JSON.parse((await blob(manifest.config.digest)).toString())
  assert.deepEqual(config.config, {
    Env: ['PATH=/usr/bin', 'NODE_ENV=production'],
    WorkingDir: '/app',
    User: '1000:1000',
    Entrypoint: ['node'],
    Cmd: ['dist/main.js'],
    ExposedPorts: { '3000/tcp': {} },
    Labels: annotations,
  })
  const own = gunzipSync(await blob(manifest.layers[1].digest))
  assert.deepEqual(config.rootfs.diff_ids, [diffId, sha256(own)])
  assert.equal(config.history.length, 2)
  await writeFile(join(dir, 'layer.tar'), own)
  const listing = execFileSync('tar', ['--list', '--verbose', '--numeric-owner', '--file', join(dir, 'layer.tar')], {
    encoding: 'utf8',
  })
  assert.match(listing, /^-rw-r--r-- 0\/0 .* app\/dist\/main\.js$/m)
  assert.match(listing, /app\/start\.js -> dist\/main\.js$/m)
})

test.skipIf((await isBuilt('registry')) ? false : 'crane has not been built here: pnpm release builds it')(
  'a registry takes an image, and gives it as a base',
  async (t) => {
    const dir = await scratchDir(t)
    const crane = join(await programSetDir('registry'), 'crane')
    const address = `127.0.0.1:${await freePort()}`
    const keeper = openKeeper()
    t.onTestFinished(() => keeper.close())
    keeper.spawn({ command: crane, args: ['registry', 'serve', '--address', address], stopOrder: stopOrder.service })
    await until(async () => (await fetch(`http://${address}/v2/`)).ok, { what: 'the registry' })

    await writeBase(join(dir, 'base'))
    const image = await writeImage(join(dir, 'root'))
    const name = `${address}/spillway/worker:1.2.3`
    const [layout, pulled] = [join(dir, 'layout'), join(dir, 'pulled')]
    const options = { image, annotations: { 'org.opencontainers.image.version': '1.2.3' }, epoch: 1_000 }
    await writeOciArchive({ ...options, base: join(dir, 'base'), file: join(dir, 'image.tar') })
    await mkdir(layout)
    execFileSync('tar', ['--extract', '--file', join(dir, 'image.tar'), '-C', layout])
    await run(crane, ['push', layout, name])
    await run(crane, ['validate', '--remote', name])
    await mkdir(pulled)
    await pullImage(crane, name, pulled)
    await writeOciArchive({ ...options, base: pulled, file: join(dir, 'upon.tar') })
  },
)

test('a base that is not one image is refused', async (t) => {
  const base = await scratchDir(t)
  await writeFile(join(base, 'index.json'), JSON.stringify({ manifests: [] }))
  const image: Image = { root: base, env: {}, workdir: '/', uid: 0, gid: 0, entrypoint: [], cmd: [], ports: [] }
  const archive = { image, base, file: join(base, 'x.tar'), annotations: {}, epoch: 0 }
  await assert.rejects(writeOciArchive(archive), /does not hold one image/)
})
