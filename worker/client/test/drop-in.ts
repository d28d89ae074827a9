// Each case is run through a drop-in replacement and through the package that it replaces.
import assert from 'node:assert/strict'
import { createPasswordsWith, type ExactPasswords } from '@spillway/client/application/create-passwords'
import { withResolvers } from '@spillway/common/within'
import { test } from 'vitest'
import { besideProgram } from './passwords.ts'

/** A call as programs without types make it. */
// biome-ignore lint/suspicious/noExplicitAny: what the packages do with wrong types is a part of what is compared
export type Untyped = any

/** What a case is called, and what it does with the package. */
export type Case = [name: string, run: (api: Untyped) => unknown]

/** A process may take long to start on a busy machine. */
const WAIT_MS = 100_000

/** One process for all cases of a file. */
export function passwordsBeside(): ExactPasswords {
  return createPasswordsWith(besideProgram, { waitMs: WAIT_MS })
}

/**
 * Each case is a test: both give the same result, or error of the same class, name and code.
 * @param normal gives what is compared of a result
 */
export function compareAll(
  cases: readonly Case[],
  original: Untyped,
  ours: Untyped,
  { version = 'newest', normal = (result: unknown) => result } = {},
): void {
  const outcomeOf = async (run: Case[1], api: Untyped) => {
    try {
      return { result: normal(await run(api)) }
    } catch (error) {
      return { error: described(error) }
    }
  }
  for (const [name, run] of cases) {
    test(`${version}: ${name}`, async () =>
      assert.deepEqual(await outcomeOf(run, ours), await outcomeOf(run, original)))
  }
}

/** What JavaScript's callers give by mistake, each with a name. */
export const mistakes: [name: string, value: unknown][] = [
  undefined,
  null,
  Number.NaN,
  10n,
  -1,
  0,
  2 ** 31,
  '',
  '10',
  false,
  {},
  [10],
  Symbol('x'),
  () => 10,
].map((value) => [`${typeof value} ${String(value) || JSON.stringify(value)}`, value])

/** The functions of a package as listed: their names and numbers of arguments */
export function signatures(api: Untyped): unknown[] {
  return Object.entries<Untyped>(api)
    .map(([key, { name, length }]) => [key, name, length])
    .sort()
}

/** What a callback is given, and whether anything was before the call had returned. */
export async function called(run: (callback: Untyped) => unknown): Promise<unknown> {
  let isBack = false
  let given: unknown[] = []
  const callback = withResolvers<void>()
  const returned = run((...values: unknown[]) => {
    given = [isBack, ...values.map((value) => (value instanceof Error ? described(value) : value))]
    callback.resolve()
  })
  isBack = true
  await callback.promise
  return { returned, given }
}

function described(error: unknown): unknown {
  assert.ok(error instanceof Error)
  const code = 'code' in error ? error.code : undefined
  return { class: error.constructor.name, name: error.name, message: error.message, code }
}
