/** The types of `@spillway/client/bcryptjs`, as in the package `bcryptjs`. They import nothing. */

export type Callback<T> = (err: Error | null, result?: T) => void
/** Of the package, as it hashes: here called once, at the end. */
export type ProgressCallback = (percentage: number) => void

export interface Bcryptjs {
  /** Node has random bytes: it is not called. */
  setRandomFallback(random: (length: number) => number[]): void
  genSaltSync(rounds?: number): string
  genSalt(rounds?: number): Promise<string>
  genSalt(callback: Callback<string>): void
  genSalt(rounds: number, callback: Callback<string>): void
  /** Hashes in this process, on its event loop, and warns once. */
  hashSync(password: string, salt?: number | string): string
  hash(password: string, salt: number | string): Promise<string>
  hash(password: string, salt: number | string, callback?: Callback<string>, progress?: ProgressCallback): void
  /** Hashes in this process, on its event loop, and warns once. */
  compareSync(password: string, hash: string): boolean
  compare(password: string, hash: string): Promise<boolean>
  compare(password: string, hash: string, callback?: Callback<boolean>, progress?: ProgressCallback): void
  getRounds(hash: string): number
  getSalt(hash: string): string
  /** Whether a password is longer than the 72 bytes that are read. */
  truncates(password: string): boolean
  encodeBase64(bytes: Readonly<ArrayLike<number>>, length: number): string
  decodeBase64(text: string, length: number): number[]
}
