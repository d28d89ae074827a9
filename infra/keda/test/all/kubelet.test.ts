// A pod as a container of Docker: its environment, its rights, its probes, its restart and its end.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Keeper } from '@spillway/infra/processes/keeper'
import { until } from '@spillway/infra/processes/until'
import { scratchDir } from '@spillway/infra/rig/namespace'
import { test } from 'vitest'
import { images } from '../../../docker/src/engine.ts'
import type { KubernetesApi, WatchEvent } from '../../src/api.ts'
import { Kubelet } from '../../src/kubelet.ts'
import type { Pod } from '../../src/pod.ts'

function hasImage(): boolean {
  try {
    execFileSync('docker', ['image', 'inspect', images.worker], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}
const skip = hasImage() ? false : 'no images here: run pnpm --filter @spillway/infra containers'

const PROGRAM = `
  let ready = 200
  process.on('SIGTERM', () => process.exit(7))
  require('http').createServer((request, response) => {
    if (request.url === '/unready') ready = 500
    response.writeHead(request.url === '/ready' ? ready : 200).end()
  }).listen(18181, process.env.POD_IP)
  console.log([process.getuid(), process.env.SECRET, process.env.CPU].join(' '))`

const pod: Pod = {
  metadata: {
    name: `kubelet-test-${process.pid}`,
    namespace: 'login',
    uid: 'u',
    labels: { 'app.kubernetes.io/component': 'worker' },
  },
  spec: {
    restartPolicy: 'Always',
    terminationGracePeriodSeconds: 15,
    securityContext: { runAsUser: 1_001, runAsGroup: 1_001 },
    containers: [
      {
        name: 'worker',
        image: 'spillway/worker:0.1.0',
        args: ['--eval', PROGRAM],
        env: [
          { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
          { name: 'SECRET', valueFrom: { secretKeyRef: { name: 'keys', key: 'seal' } } },
          { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
        ],
        ports: [{ name: 'http', containerPort: 18_181 }],
        resources: { limits: { cpu: '1', memory: '256Mi' } },
        securityContext: {
          readOnlyRootFilesystem: true,
          allowPrivilegeEscalation: false,
          capabilities: { drop: ['ALL'] },
        },
        readinessProbe: { httpGet: { path: '/ready', port: 'http' }, periodSeconds: 0.2, failureThreshold: 1 },
      },
    ],
  },
}

test.skipIf(skip)(
  'a pod runs with its environment and rights, is probed, restarted, and ends by SIGTERM',
  async (t) => {
    const keeper = new Keeper()
    t.onTestFinished(() => keeper.close())
    const logDir = await scratchDir(t)
    await mkdir(join(logDir, 'pods'))
    let tell: ((event: WatchEvent<Pod>) => void) | undefined
    const reports: string[] = []
    const api: Pick<KubernetesApi, 'call' | 'watch'> = {
      async call(method, path, body) {
        if (method === 'PATCH') reports.push(JSON.stringify(body))
        const found: unknown = path.endsWith('/secrets/keys') ? { data: { seal: btoa('hush') } } : {}
        return JSON.parse(JSON.stringify(found))
      },
      watch<T>(_path: string, onEvent: (event: WatchEvent<T>) => void) {
        tell = (event) => onEvent(JSON.parse(JSON.stringify(event)))
        return { close() {} }
      },
    }
    const said: string[] = []
    const kubelet = new Kubelet({
      api,
      keeper,
      namespace: 'login',
      network: '127.0',
      images: { 'spillway/worker': images.worker },
      logDir,
      say: (sentence) => said.push(sentence),
    })
    tell?.({ type: 'ADDED', object: pod })
    const run = await until(() => kubelet.pods('worker')[0], { timeoutMs: 30_000, what: said.join() || 'the pod' })
    await until(() => run.ready, { timeoutMs: 30_000, what: 'its readiness' })
    const log = () => readFile(join(logDir, 'pods', `${pod.metadata.name}.log`), 'utf8')
    assert.equal(await log(), '1001 hush 1000\n')
    const [inspected] = JSON.parse(execFileSync('docker', ['inspect', run.containerName], { encoding: 'utf8' }))
    const { ReadonlyRootfs, CapDrop, NanoCpus, Memory } = inspected.HostConfig
    assert.deepEqual([ReadonlyRootfs, CapDrop, NanoCpus, Memory], [true, ['ALL'], 1e9, 2 ** 28])

    await fetch(`http://${run.ip}:18181/unready`)
    await until(() => !run.ready, { timeoutMs: 30_000, what: 'its unreadiness' })
    const before = run.containerName
    await run.kill()
    await until(() => run.restarts === 1 && run.ready, { timeoutMs: 30_000, what: 'another container' })
    assert.notEqual(run.containerName, before)

    tell?.({
      type: 'MODIFIED',
      object: { ...pod, metadata: { ...pod.metadata, deletionTimestamp: 'now', deletionGracePeriodSeconds: 10 } },
    })
    await until(() => run.exitCode !== undefined, { timeoutMs: 30_000, what: 'its end' })
    assert.equal(run.exitCode, 7)
    assert.match(reports.at(-1) ?? '', /"phase":"Failed".*"exitCode":7/)
  },
)
