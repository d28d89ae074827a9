import { test } from 'node:test'
import { assertSettingsTable } from '@spillway/local/testing/settings-table'
import { WorkerConfig } from '../src/config.ts'

test("the worker's README has every setting, with default, bounds and meaning", () =>
  assertSettingsTable(new URL('../README.md', import.meta.url), WorkerConfig))
