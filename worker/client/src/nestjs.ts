/** `@spillway/client/nestjs`: gives `Passwords` to inject, and closes them with the application. */
import { ConfigurableModuleBuilder, Inject, Module, type OnApplicationShutdown } from '@nestjs/common'
import { createPasswords, type Passwords as PasswordsOfClient, type PasswordsOptions } from './index.js'

/** What is injected: hashes and verifies, as `createPasswords` describes. */
export abstract class Passwords implements PasswordsOfClient {
  abstract readonly admit: PasswordsOfClient['admit']
  abstract readonly verify: PasswordsOfClient['verify']
  abstract readonly hash: PasswordsOfClient['hash']
  abstract readonly begin: PasswordsOfClient['begin']
  abstract readonly redeem: PasswordsOfClient['redeem']
  abstract readonly needsRehash: PasswordsOfClient['needsRehash']
  abstract readonly capacity: PasswordsOfClient['capacity']
  abstract readonly close: PasswordsOfClient['close']
}

/** Whether other modules inject `Passwords` without importing this one [true]. */
const extras = { isGlobal: true }

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } = new ConfigurableModuleBuilder<PasswordsOptions>()
  .setClassMethodName('forRoot')
  .setExtras(extras, (definition, { isGlobal }) => ({ ...definition, global: isGlobal }))
  .build()

export class SpillwayModule extends ConfigurableModuleClass implements OnApplicationShutdown {
  readonly #passwords: Passwords

  constructor(passwords: Passwords) {
    super()
    this.#passwords = passwords
  }

  /** With the options of `createPasswords`, all of which may be left out. */
  static override forRoot(options: Parameters<typeof ConfigurableModuleClass.forRoot>[0] = {}) {
    // biome-ignore lint/complexity/noThisInStatic: called by the name of the parent, it would be the parent's module
    return super.forRoot(options)
  }

  /** Not in onModuleDestroy, before the server closes: running requests must still be answered. */
  onApplicationShutdown(): Promise<void> {
    return this.#passwords.close()
  }
}

const passwords = { provide: Passwords, useFactory: createPasswords, inject: [MODULE_OPTIONS_TOKEN] }
Module({ providers: [passwords], exports: [Passwords] })(SpillwayModule)
Inject(Passwords)(SpillwayModule, undefined, 0)
