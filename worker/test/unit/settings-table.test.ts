import { assertSettingsTable } from '@spillway/infra/test/settings-table'
import { test } from 'vitest'
import { WorkerConfig } from '../../src/config.ts'

test("the worker's README has every setting, with default, bounds and meaning", () =>
  assertSettingsTable(new URL('../../README.md', import.meta.url), WorkerConfig))
