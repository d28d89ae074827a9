// How settings are read: secrets from files, empty variables, misspelled names.

import assert from 'node:assert/strict'
import { misspelledIn } from '@spillway/common/read-settings'
import { newSealKey, newSigningKey } from '@spillway/infra/start/secrets'
import { assertSecretFiles } from '@spillway/infra/test/secret-files'
import { test } from 'vitest'
import { WorkerConfig } from '../../../worker/src/config.ts'
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
    ...{ CHALLENGE_SECRET: 'a challenge secret', SERVICE_KEYS: newSealKey('shop') },
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

test.each([
  ['CORS_ORIGIN', 'CORS_ORIGINS'],
  ['DATABSE_URL', 'DATABASE_URL'],
  ['DATABASE_URI', 'DATABASE_URL'],
  ['LOGIN_WIAT_MS', 'LOGIN_WAIT_MS'],
  ['SPILLWAY_SEAL_KEY_FILE', 'SPILLWAY_SEAL_KEYS_FILE'],
])('%s is told to be %s misspelled', (name, setting) => {
  assert.deepEqual(misspelledIn({ [name]: 'hush' }, GatewayConfig), [
    `${name} is no setting and has no effect: ${setting} is one`,
  ])
})

test('no setting is taken for another one misspelled, nor are variables of others', () => {
  const names = [...Object.keys(GatewayConfig.properties), ...Object.keys(WorkerConfig.properties)]
  const others = ['HOME', 'PATH', 'POST', 'HOSTNAME', 'DATABASE', 'REDIS_HOST', 'NODE_ENV', 'OTEL_SERVICE_NAME']
  const env = Object.fromEntries([...names, ...others].map((name) => [name, 'x']))
  for (const schema of [GatewayConfig, WorkerConfig]) assert.deepEqual(misspelledIn(env, schema), [])
})
