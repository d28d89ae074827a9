// A Docker engine and the images: the engine that answers, else one for this run, which only root
// can start.
import { mkdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { UserError } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { defaultStateDir, programsDir, repositoryDir } from '@spillway/infra/processes/repository'
import { onPath, run } from '@spillway/infra/processes/run'
import { makeOnce } from '@spillway/infra/services/apt-packages'
import { startService } from '@spillway/infra/services/service'

export const dockerfile = fileURLToPath(new URL('../Dockerfile', import.meta.url))
const standIn = fileURLToPath(new URL('../stand-in.sh', import.meta.url))

/** Both images by target, with the tags of compose.yaml. */
export const images = { gateway: 'spillway/gateway:local', worker: 'spillway/worker:local' } as const

/** Runs a command of Docker, and resolves with its output. Rejects with a ToolFailure. */
export const docker = (...args: string[]): Promise<string> => run('docker', args, { env: process.env })

/** Finds or starts an engine, for every `docker` from then on. Rejects with a UserError. */
export async function openDocker(keeper: Keeper): Promise<void> {
  const answers = () => docker('info').then(Boolean, () => false)
  if (await answers()) return
  if (onPath(['docker']) === undefined || onPath(['dockerd']) === undefined || process.getuid?.() !== 0)
    throw new UserError('No Docker engine answers: start one, or install docker.io and run this as root.')
  const dir = join(defaultStateDir, 'docker')
  mkdirSync(dir, { recursive: true })
  const host = `unix://${join(dir, 'docker.sock')}`
  process.env.DOCKER_HOST = host
  const args = ['--data-root', join(dir, 'data'), '--exec-root', join(dir, 'exec'), '--pidfile', join(dir, 'pid')]
  await startService({
    keeper,
    name: 'dockerd',
    process: { command: 'dockerd', args: [...args, '--host', host] },
    logFile: join(dir, 'log'),
    url: host,
    ping: answers,
  })
}

/** The version of compose that is built where Docker has no plugin. */
const COMPOSE = 'v2.40.3'

/** Returns `docker compose`, or the same program from its Go module. */
export async function openCompose(say: (sentence: string) => void): Promise<typeof docker> {
  const hasPlugin = await docker('compose', 'version').then(Boolean, () => false)
  if (hasPlugin) return (...args) => docker('compose', ...args)
  const dir = join(programsDir, `compose-${COMPOSE}`)
  const { env } = process
  await makeOnce(dir, async (made) => {
    say('Docker has no compose plugin: building it from its Go module, once.')
    const found = await run('go', ['mod', 'download', '-json', `github.com/docker/compose/v2@${COMPOSE}`], { env })
    const { Dir: source }: { Dir: string } = JSON.parse(found)
    // `go install` refuses a module with exclude directives.
    await run('go', ['build', '-C', source, '-o', join(made, 'docker-compose'), './cmd'], { env })
  })
  return (...args) => run(join(dir, 'docker-compose'), args, { env })
}

/** Pulls images, or builds stand-ins where no hub has them. */
export async function obtain(images: string[], say: (sentence: string) => void): Promise<void> {
  const exist = await Promise.all(images.map(isHere))
  const missing = images.filter((_, index) => !exist[index])
  if (missing.length === 0) return
  say(`No hub has ${missing.join(', ')}: building stand-ins, which takes some minutes.`)
  await run('bash', [standIn, ...missing], { env: process.env })
}

/** Builds both images. */
export async function buildImages(say: (sentence: string) => void): Promise<void> {
  await obtain(await baseImages(), say)
  for (const [target, tag] of Object.entries(images)) {
    say(`docker build --target ${target}`)
    // The tracked files alone: Docker's older builder does not read Dockerfile.dockerignore.
    const context = 'git ls-files -z | tar --create --null --ignore-failed-read --files-from=-'
    const build = `docker build --network=host --file=infra/docker/Dockerfile --target=${target} --tag=${tag} -`
    await run('bash', ['-c', `set -o pipefail; ${context} | ${build}`], { cwd: repositoryDir, env: process.env })
  }
}

/** The images that the Dockerfile builds from: Node's, then Rust's. */
async function baseImages(): Promise<string[]> {
  const lines = (await readFile(dockerfile, 'utf8')).matchAll(/^FROM (\S+:\S+)/gm)
  return [...new Set([...lines].map(([, name = '']) => name))]
}

/** Whether the engine has an image, or can pull it. */
export async function isHere(image: string): Promise<boolean> {
  const inspected = docker('image', 'inspect', image)
  return await inspected.catch(() => docker('pull', '--quiet', image)).then(Boolean, () => false)
}
