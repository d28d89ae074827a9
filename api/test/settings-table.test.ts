import { test } from 'node:test'
import { assertSettingsTable } from '@spillway/local/testing/settings-table'
import { GatewayConfig } from '../src/config.ts'

test("the gateway's README has every setting, with default, bounds and meaning", () =>
  assertSettingsTable(new URL('../README.md', import.meta.url), GatewayConfig))
