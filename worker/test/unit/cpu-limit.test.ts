import assert from 'node:assert/strict'
import { posix } from 'node:path'
import { test } from 'vitest'
import { workerConcurrency } from '../../src/consumer/cpu-limit.ts'

/** A machine of 16 processors with these files and variables, and nothing else. */
function slots(files: Record<string, string>, env: Record<string, string> = {}, processors = 16): number {
  return workerConcurrency({
    env,
    processors,
    read(path) {
      const text = files[posix.normalize(path)]
      if (text === undefined) throw new Error(`ENOENT: ${path}`)
      return text
    },
  })
}

/** A container limited to six processors. */
const container = { '/proc/self/cgroup': '0::/\n', '/sys/fs/cgroup/cpu.max': '600000 100000\n' }

test('without any limit every processor is used', () => {
  assert.equal(slots({}), 16)
})

test('the setting comes before the pod spec, the pod spec before the control group, and that before the machine', () => {
  assert.equal(slots(container, { WORKER_CONCURRENCY: '32', CPU_LIMIT_MILLICORES: '4000' }), 32)
  assert.equal(slots(container, { CPU_LIMIT_MILLICORES: '4000' }), 4)
  assert.equal(slots(container), 6)
})

test('no limit gives more slots than there are processors', () => {
  assert.equal(slots({}, { CPU_LIMIT_MILLICORES: '64000' }), 16)
  assert.equal(slots(container, {}, 2), 2)
})

test('a variable that is no positive whole number counts as not given', () => {
  for (const wrong of ['', '0', '-2', '2.5', 'two', ' 2', '1e3', '99999999']) {
    assert.equal(slots(container, { WORKER_CONCURRENCY: wrong, CPU_LIMIT_MILLICORES: wrong }), 6, JSON.stringify(wrong))
  }
})

test('a part of a processor is rounded down, but one slot always remains', () => {
  assert.equal(slots({}, { CPU_LIMIT_MILLICORES: '2900' }), 2)
  assert.equal(slots({}, { CPU_LIMIT_MILLICORES: '100' }), 1)
  assert.equal(slots({ ...container, '/sys/fs/cgroup/cpu.max': '350000 100000' }), 3)
  assert.equal(slots({ ...container, '/sys/fs/cgroup/cpu.max': '5000 100000' }), 1)
})

test('cgroup v2: the tightest limit up the tree counts, and "max" is none', () => {
  const tree = (own: string, slice: string, root: string) => ({
    '/proc/self/cgroup': '0::/kubepods.slice/pod.scope\n',
    '/sys/fs/cgroup/kubepods.slice/pod.scope/cpu.max': own,
    '/sys/fs/cgroup/kubepods.slice/cpu.max': slice,
    '/sys/fs/cgroup/cpu.max': root,
  })
  assert.equal(slots(tree('200000 100000', '800000 100000', 'max 100000')), 2)
  assert.equal(slots(tree('max 100000', '300000 100000', '800000 100000')), 3)
  assert.equal(slots(tree('max 100000', 'max 100000', '400000 100000')), 4)
  assert.equal(slots(tree('max 100000', 'max 100000', 'max 100000')), 16)
})

test("cgroup v2: inside a container, where the host's path is not there, the root is read", () => {
  const seen = { '/sys/fs/cgroup/cpu.max': '250000 50000\n' }
  assert.equal(slots({ ...seen, '/proc/self/cgroup': '0::/../../system.slice/docker-1.scope\n' }), 5)
  assert.equal(slots({ ...seen, '/proc/self/cgroup': '0::/system.slice/docker-1.scope\n' }), 5)
})

test('cgroup v1: quota over period of the cpu controller, the tightest up the tree; -1 is no limit', () => {
  const quotas = (own: string, root: string) => ({
    '/proc/self/cgroup': '9:memory:/elsewhere\n4:cpu,cpuacct:/docker/1\n',
    '/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us': own,
    '/sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us': '100000\n',
    '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us': root,
    '/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us': '50000\n',
  })
  assert.equal(slots(quotas('700000\n', '-1\n')), 7)
  assert.equal(slots(quotas('700000\n', '250000\n')), 5)
  assert.equal(slots(quotas('-1\n', '-1\n')), 16)
})

test('cgroup v1: the controller may be mounted as cpu alone', () => {
  const files = {
    '/proc/self/cgroup': '4:cpuacct,cpu:/docker/1\n1:name=systemd:/docker/1\n0::/docker/1\n',
    '/sys/fs/cgroup/cpu/cpu.cfs_quota_us': '200000\n',
    '/sys/fs/cgroup/cpu/cpu.cfs_period_us': '100000\n',
  }
  assert.equal(slots(files), 2)
})

test('cgroup v1: the groups of other controllers are no limit, though the cpu controller has one of the same name', () => {
  const files = {
    '/proc/self/cgroup': '9:memory:/elsewhere\n4:cpu:/docker/1\n',
    '/sys/fs/cgroup/cpu/elsewhere/cpu.cfs_quota_us': '200000\n',
    '/sys/fs/cgroup/cpu/elsewhere/cpu.cfs_period_us': '100000\n',
  }
  assert.equal(slots(files), 16)
})

test('files that make no sense are no limit', () => {
  assert.equal(slots({ '/proc/self/cgroup': '0::\n0::relative\n' }), 16)
  assert.equal(slots({ ...container, '/sys/fs/cgroup/cpu.max': '' }), 16)
  assert.equal(slots({ ...container, '/sys/fs/cgroup/cpu.max': '0 100000' }), 16)
  assert.equal(slots({ ...container, '/sys/fs/cgroup/cpu.max': '100000 0' }), 16)
})
