/** The types of `@spillway/client/bcrypt`, as in the package `bcrypt`. They import nothing. */

export type Minor = 'a' | 'b'

export interface Bcrypt {
  /** A salt to hash with: a cost [10] from 4 to 31, and random bytes. Hashes nothing. */
  genSaltSync(rounds?: number, minor?: Minor): string

  /** A salt to hash with: a cost [10] from 4 to 31, and random bytes. Hashes nothing. */
  genSalt(rounds?: number, minor?: Minor): Promise<string>
  genSalt(callback: (err: Error | undefined, salt: string) => unknown): void
  genSalt(rounds: number, callback: (err: Error | undefined, salt: string) => unknown): void
  genSalt(rounds: number, minor: Minor, callback: (err: Error | undefined, salt: string) => unknown): void

  /** Hashes in this process, on its event loop, and warns once. */
  hashSync(data: string | Buffer, saltOrRounds: string | number): string

  /**
   * A new hash, with a salt that is given or made for these rounds. Of the data 72 bytes are read.
   */
  hash(data: string | Buffer, saltOrRounds: string | number): Promise<string>
  hash(
    data: string | Buffer,
    saltOrRounds: string | number,
    callback: (err: Error | undefined, encrypted: string) => unknown,
  ): void

  /** Hashes in this process, on its event loop, and warns once. */
  compareSync(data: string | Buffer, encrypted: string): boolean

  /** Whether data matches a hash: 2a or 2b. Of the data 72 bytes are read. */
  compare(data: string | Buffer, encrypted: string): Promise<boolean>
  compare(data: string | Buffer, encrypted: string, callback: (err: Error | undefined, same: boolean) => unknown): void

  /** The rounds of a hash. */
  getRounds(encrypted: string): number
}
