// The rules that the chart carries: valid, and tested.
import { fileURLToPath } from 'node:url'
import { test } from 'vitest'
import { promtool, skipWithoutPromtool as skip } from '../promtool.ts'

const alertsDir = fileURLToPath(new URL('../../', import.meta.url))
const files = ['recording.yaml', 'minimum.yaml', 'alerts.yaml'].map((name) => `../helm/spillway/files/alerts/${name}`)

test.skipIf(skip)('promtool finds every alert firing when it should and only then', async () => {
  await promtool(
    alertsDir,
    ['check', 'rules', ...files],
    ['test', 'rules', 'alert-tests/alerts.yaml', 'alert-tests/scaled-to-zero.yaml'],
  )
})
