// Users, kept in memory, and in users.json for the next start.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Injectable } from '@nestjs/common'
import { Passwords } from '@spillway/client/nestjs'

@Injectable()
export class AuthService {
  /** Hashes of passwords by e-mail address. */
  private readonly users = new Map<string, string>(
    existsSync('users.json') ? JSON.parse(readFileSync('users.json', 'utf8')) : [],
  )

  constructor(private readonly passwords: Passwords) {}

  /** Whether there was no such user before. */
  async register(email: string, password: string): Promise<boolean> {
    const hash = await this.passwords.hash(password)
    if (this.users.has(email)) return false
    this.users.set(email, hash)
    writeFileSync('users.json', JSON.stringify([...this.users]))
    return true
  }

  /** null for an unknown user takes as long, and is never true. */
  isRight(email: string, password: string): Promise<boolean> {
    return this.passwords.verify(password, this.users.get(email) ?? null)
  }
}
