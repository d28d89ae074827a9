import { assertSettingsTable } from '@spillway/infra/test/settings-table'
import { test } from 'vitest'
import { GatewayConfig } from '../../src/config.ts'

test("the gateway's README has every setting, with default, bounds and meaning", () =>
  assertSettingsTable(new URL('../../README.md', import.meta.url), GatewayConfig))
