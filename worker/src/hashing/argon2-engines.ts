/** The implementations of argon2: what each takes, and how it is called. */
import { type Argon2Setting, argon2Setting } from '@spillway/client/protocol/setting'
import { parseArgon2, unpadded } from '@spillway/client/protocol/stored-hash'
import type { Engine } from './engine.js'
import { NATIVE_NAME, type NativeEngine } from './native.js'
import type { Threads } from './threads.js'

/** The length of a digest unless told otherwise. */
export const DIGEST_BYTES = 32

export interface Argon2Engine extends Engine {
  /** Whether it takes more than password and salt. */
  takes(inputs: Inputs): boolean
  hash(password: string | Uint8Array, setting: Argon2Setting, inputs: Inputs, signal?: AbortSignal): Promise<string>
}

/** What a hash is made with that is not in its text. */
export interface Inputs {
  digestBytes: number
  secret?: Buffer
  associatedData?: Buffer
}

export async function nativeEngine(native: NativeEngine | undefined): Promise<Argon2Engine> {
  if (native === undefined) throw new Error('it is not built, or turned off')
  return {
    name: NATIVE_NAME,
    takes: ({ digestBytes, secret, associatedData }) => digestBytes === DIGEST_BYTES && !secret && !associatedData,
    hash: (password, setting, _, signal) => native.hash(password, argon2Setting(setting), { signal }),
    verify: (password, stored, signal) => native.verify(password, stored, { signal }),
  }
}

export async function nodeRsEngine({ run }: Threads): Promise<Argon2Engine> {
  const { hashRaw, verify } = await import('@node-rs/argon2')
  return {
    name: '@node-rs/argon2',
    takes: ({ associatedData }) => !associatedData,
    hash: (password, setting, { digestBytes, secret }) =>
      run(async () => {
        const { memoryKib: memoryCost, time: timeCost, parallelism, salt } = setting
        const [algorithm, version] = [TYPES[setting.algorithm], setting.version === 19 ? 1 : 0]
        const cost = { memoryCost, timeCost, parallelism }
        const options = { algorithm, version, ...cost, salt, outputLen: digestBytes, ...(secret ? { secret } : {}) }
        return encoded(setting, await hashRaw(password, options))
      }, setting.memoryKib),
    verify: (password, stored) => run(() => verify(stored, password), memoryKibOf(stored)),
  }
}

export async function referenceEngine({ run }: Threads): Promise<Argon2Engine> {
  const { hash, verify } = await import('argon2')
  return {
    name: 'argon2',
    takes: () => true,
    hash: (password, setting, { digestBytes: hashLength, ...inputs }) =>
      run(async () => {
        const { memoryKib: memoryCost, time: timeCost, parallelism, version, salt } = setting
        const cost = { memoryCost, timeCost, parallelism }
        const options = { type: TYPES[setting.algorithm], version, ...cost, salt, hashLength, ...inputs }
        return encoded(setting, await hash(Buffer.from(password), { ...options, raw: true }))
      }, setting.memoryKib),
    verify: (password, stored) => run(() => verify(stored, Buffer.from(password)), memoryKibOf(stored)),
  }
}

function memoryKibOf(storedHash: string): number | undefined {
  return parseArgon2(storedHash)?.memoryKib
}

/** The numbers of both packages. */
const TYPES = { argon2d: 0, argon2i: 1, argon2id: 2 } as const

/** A stored hash. Associated data is not in it. */
function encoded(setting: Argon2Setting, digest: Buffer): string {
  return `${argon2Setting(setting)}$${unpadded(digest)}`
}
