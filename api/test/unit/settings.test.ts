// How settings are read: secrets from files, empty variables.

import assert from 'node:assert/strict'
import { newSealKey, newSigningKey } from '@spillway/infra/start/secrets'
import { assertSecretFiles } from '@spillway/infra/test/secret-files'
import { test } from 'vitest'
import { GatewayConfig, readGatewayConfig } from '../../src/config.ts'

const required = {
  DATABASE_URL: 'postgresql://ann:pass@db/shop',
  SPILLWAY_SEAL_KEYS: newSealKey(),
  SPILLWAY_JWT_KEYS: newSigningKey(),
}
const mail = {
  MAIL_FROM: 'no-reply@shop.test',
  MAIL_CONFIRM_URL: 'https://shop.test/{token}',
  MAIL_RESET_URL: 'https://shop.test/{token}',
}

test('each secret of a gateway may come from a file', () => {
  const secrets = {
    ...{ REDIS_URL: 'redis://ann:pass@cache', SMTP_URL: 'smtps://ann:pass@mail', OPS_PASSWORD: 'a long passphrase' },
    OPS_PROXY_SECRET: 'a long passphrase',
    ...{ SERVICE_KEYS: newSealKey('shop') },
  }
  assertSecretFiles(GatewayConfig, { ...required, ...mail, ...secrets }, readGatewayConfig)
})

test('an empty variable is the same as none, for every setting of a gateway', () => {
  const empty = Object.fromEntries(Object.keys(GatewayConfig.properties).map((name) => [name, '']))
  assert.deepEqual(readGatewayConfig({ ...empty, ...required }), readGatewayConfig(required))
  assert.throws(() => readGatewayConfig(empty), {
    message: 'DATABASE_URL must be set; SPILLWAY_SEAL_KEYS must be set; SPILLWAY_JWT_KEYS must be set',
  })
})

test('a value that is not allowed is told with those that are', () => {
  assert.throws(
    () => readGatewayConfig({ ...required, REGISTRATION: 'opened', SESSION_COOKIE: 'yes', LOG_LEVEL: 'all' }),
    {
      message:
        'LOG_LEVEL must be one of fatal, error, warn, info, debug, trace, silent; SESSION_COOKIE must be true or false; REGISTRATION must be one of open, closed',
    },
  )
})

test('a value of another form is told with the description of its setting, and never shown', () => {
  const { OPS_BASE_PATH } = GatewayConfig.properties
  assert.throws(() => readGatewayConfig({ ...required, OPS_BASE_PATH: 'hush' }), {
    message: `OPS_BASE_PATH must have the form of its description (${OPS_BASE_PATH.description})`,
  })
})
