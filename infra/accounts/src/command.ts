// The command `pnpm accounts`: imports, exports and counts accounts, and makes operators.
import { createWriteStream } from 'node:fs'
import { finished } from 'node:stream/promises'
import { newOperator, roles } from '@spillway/api/operators'
import type { Passwords } from '@spillway/client'
import { createPasswordsWith } from '@spillway/client/application/create-passwords'
import { readSecret } from '@spillway/common/secrets'
import { UserError, whole } from '@spillway/infra/processes/command-line'
import { readEnvironment, runningDatabase } from '@spillway/infra/start/places'
import { loadSecrets } from '@spillway/infra/start/secrets'
import { connectDatabase, type Database } from '@spillway/prisma'
import { stepsOf } from '@spillway/worker/hashing/formats/envelopes'
import { formats } from '@spillway/worker/hashing/formats/list'
import {
  firebaseProject,
  firebaseSettings,
  oldSystemSettings,
  type Pepper,
  peppersOf,
} from '@spillway/worker/hashing/formats/settings'
import { Hasher } from '@spillway/worker/hashing/index'
import { argon2idPolicy } from '@spillway/worker/hashing/policy'
import { hashingMemory } from '@spillway/worker/hashing/threads'
import { createCheck } from './account.ts'
import { breached } from './breached.ts'
import { openDeleted } from './deleted.ts'
import { type ImportReport, importAccounts, LinesFile } from './import.ts'
import { help, type ImportCommand, parseOptions } from './options.ts'
import { presets } from './presets.ts'
import { readRecords } from './records.ts'
import { countHashes, exportAccounts } from './stored-accounts.ts'

/** Weak digests wait for each other. */
const WRAPPING_MS = 600_000
const PROGRESS_MS = 2_000
/** Nothing is hashed by it: formats alone are asked for. */
const ANY_COST = { memoryKib: 64, time: 1, parallelism: 1 }

/** The process that hashes weak digests where there is no queue. */
const beside = new URL(import.meta.resolve('@spillway/worker/beside'))

export type Output = Pick<Console, 'log' | 'error'>

/** Resolves to the exit code. Throws a UserError for a user's mistake. */
export async function accounts(args: readonly string[], env: NodeJS.ProcessEnv, output: Output): Promise<number> {
  if (args[0] === 'breached') {
    await breached(args.slice(1), output.log)
    return 0
  }
  const command = parseOptions(args)
  if (command === undefined) {
    output.log(help)
    return 0
  }
  if (command.name === 'formats') {
    listFormats(output)
    return 0
  }
  if (command.name === 'operator') {
    const made = newOperator(command.operator, command.role)
    if (made === undefined)
      throw new UserError(`Say operator NAME --role ${roles.join('|')}; a name has letters, digits and ._@+- only.`)
    output.log(`token, shown only now:        ${made.token}\nline of OPS_OPERATORS_FILE:   ${made.line}`)
    return 0
  }
  const { stateDir } = readEnvironment(env)
  const givenUrl = secretIn(env, 'DATABASE_URL')
  const { databaseUrl, sealKeys } =
    givenUrl === undefined
      ? { databaseUrl: runningDatabase(stateDir), sealKeys: loadSecrets(stateDir).sealKeys }
      : { databaseUrl: givenUrl, sealKeys: secretIn(env, 'SPILLWAY_SEAL_KEYS') }
  const database = openDatabase(databaseUrl)
  try {
    if (command.name === 'import') return await importFile(command, { database, sealKeys }, env, output)
    if (command.name === 'export') await exportFile(command.file, database, output)
    if (command.name === 'hashes')
      for (const [hashes, accounts] of await countHashes(database))
        output.log(`${String(accounts).padStart(12)}  ${hashes}`)
    return 0
  } finally {
    await database.$disconnect()
  }
}

/** With patience: a batch is one statement, and no request waits for it. */
function openDatabase(url: string): Database {
  return connectDatabase({ url, connectionTimeoutMs: 30_000, statementTimeoutMs: 60_000, poolSize: 1 })
}

async function importFile(
  command: ImportCommand,
  { database, sealKeys }: { database: Database; sealKeys: string | undefined },
  env: NodeJS.ProcessEnv,
  output: Output,
): Promise<number> {
  const { file, dryRun, preset, madeOf, workerMib } = command
  const startMs = performance.now()
  const { firebase, settings } = firebaseOf(env)
  if (preset === presets.firebase && firebase === undefined)
    throw new UserError('Set FIREBASE_SIGNER_KEY to base64_signer_key of the project, here and at the workers.')
  const peppers = peppersIn(env, madeOf)
  const findDeleted = await openDeleted(database, sealKeys)
  const { mostKib } = hashingMemory({ slots: 1, policyKib: 0, isShared: false, limitBytes: workerMib * 2 ** 20 })
  const hasher = await Hasher.load(argon2idPolicy(ANY_COST), { firebase, peppers, mostKib })
  const rejectedFile = `${file}.rejected.ndjson`
  const rejected = dryRun ? undefined : new LinesFile(rejectedFile)
  const ids = new LinesFile(`${file}.ids.ndjson`)
  let passwords: Passwords | undefined
  const startPasswords = () => (passwords ??= createPasswordsWith(beside, { ...queueOf(env), waitMs: WRAPPING_MS }))
  const stop = new AbortController()
  const onSignal = () => stop.abort()
  process.once('SIGINT', onSignal).once('SIGTERM', onSignal)
  let toldMs = startMs
  const result = await importAccounts({
    lines: readRecords(file, preset.columns),
    check: createCheck({ ...command, settings, hasher }),
    rejected: (of) => rejected?.add(of),
    into: dryRun ? undefined : { database, passwords: startPasswords, findDeleted },
    mapped: (both) => ids.add(both),
    signal: stop.signal,
    progress({ line }) {
      if (performance.now() - toldMs < PROGRESS_MS) return
      toldMs = performance.now()
      output.error(`${line} lines`)
    },
  }).finally(async () => {
    process.off('SIGINT', onSignal).off('SIGTERM', onSignal)
    await passwords?.close()
    await rejected?.close()
    await ids.close()
  })
  const seconds = ((performance.now() - startMs) / 1_000).toFixed(1)
  output.log(summary(result, { dryRun, seconds, rejectedFile }))
  if (stop.signal.aborted) {
    output.log('Stopped. To go on, import the file again: what it created is left.')
    return 130
  }
  if (result.failure !== undefined) throw result.failure
  return result.rejected > 0 ? 1 : 0
}

/** As gateways and workers read it. Throws a UserError for a file that cannot be read. */
export function secretIn(env: NodeJS.ProcessEnv, name: string): string | undefined {
  try {
    return readSecret(env, name)
  } catch (cause) {
    throw new UserError(cause instanceof Error ? cause.message : String(cause), { cause })
  }
}

function peppersIn(env: NodeJS.ProcessEnv, madeOf: string | undefined): Pepper[] {
  const secrets = secretIn(env, 'PASSWORD_PEPPERS') ?? ''
  if (!new RegExp(oldSystemSettings.PASSWORD_PEPPERS.pattern ?? '').test(secrets))
    throw new UserError('PASSWORD_PEPPERS takes name:base64, comma-separated.')
  const peppers = peppersOf(secrets)
  const wrong = madeOf?.split(',').find((step) => stepsOf(step, peppers) === undefined)
  if (wrong !== undefined)
    throw new UserError(
      `--made-of has no step "${wrong}": see "pnpm accounts --help"; a pepper must be in PASSWORD_PEPPERS, here and at the workers.`,
    )
  return peppers
}

function listFormats(output: Output): void {
  for (const { name, makers, isWeak } of formats)
    output.log(`${name.padEnd(38)}${isWeak ? 'inside argon2id  ' : 'rests            '}${makers}`)
}

function queueOf(env: NodeJS.ProcessEnv) {
  const { QUEUE_PREFIX: queuePrefix } = env
  const [redis, sealKeys] = [secretIn(env, 'REDIS_URL'), secretIn(env, 'SPILLWAY_SEAL_KEYS')]
  return sealKeys ? { redis, sealKeys, queuePrefix: queuePrefix || undefined } : {}
}

function firebaseOf(env: NodeJS.ProcessEnv) {
  const { FIREBASE_SALT_SEPARATOR = firebaseSettings.FIREBASE_SALT_SEPARATOR.default } = env
  const FIREBASE_SIGNER_KEY = secretIn(env, 'FIREBASE_SIGNER_KEY') ?? ''
  const firebase = firebaseProject({
    firebaseSignerKey: FIREBASE_SIGNER_KEY,
    firebaseSaltSeparator: FIREBASE_SALT_SEPARATOR,
  })
  const logCost = whole('FIREBASE_MEM_COST', env.FIREBASE_MEM_COST ?? '14', { most: 14 })
  const blockSize = whole('FIREBASE_ROUNDS', env.FIREBASE_ROUNDS ?? '8', { most: 8 })
  return { firebase, settings: { firebase: { logCost, blockSize } } }
}

function summary(
  { read, created, existing, deleted, formats, rejected, reasons }: ImportReport,
  { dryRun, ...texts }: { dryRun: boolean } & Record<'seconds' | 'rejectedFile', string>,
): string {
  const counted = (counts: readonly (readonly [string, number])[]) =>
    counts.toSorted(([, a], [, b]) => b - a).map(([name, count]) => `${String(count).padStart(12)}  ${name}`)
  const done = dryRun ? 'Nothing was written.' : `Created ${created} accounts, left ${existing} that existed.`
  const why = [...reasons].map(
    ([reason, { count, firstLine }]) => [`${reason} (first in line ${firstLine})`, count] as const,
  )
  const { seconds, rejectedFile } = texts
  return [
    `Read ${read} lines in ${seconds} s. ${done}`,
    ...(deleted > 0 ? [`Left out ${deleted} accounts that were deleted here, or have another address now.`] : []),
    ...counted([...formats]),
    ...(rejected > 0 ? [`Rejected ${rejected} lines${dryRun ? '' : `, in ${rejectedFile}`}:`, ...counted(why)] : []),
  ].join('\n')
}

async function exportFile(file: string, database: Database, output: Output): Promise<void> {
  if (file === '-') {
    await exportAccounts(database, process.stdout)
    return
  }
  const startMs = performance.now()
  const to = createWriteStream(file, { mode: 0o600, flags: 'wx' }).on('error', () => undefined)
  const failed = finished(to).catch((error: Error) => {
    throw new UserError(`${file} cannot be written: ${error.message}`)
  })
  const count = await Promise.race([exportAccounts(database, to), failed.then(() => 0)])
  to.end()
  await failed
  output.log(`Exported ${count} accounts in ${((performance.now() - startMs) / 1_000).toFixed(1)} s.`)
}
