// Users, kept in memory, and in users.json for the next start.
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { Injectable } from '@nestjs/common'
import bcrypt from 'bcrypt'

const COST = 10
/**
 * Compared with where there is no such user, so that the answer takes as long: the hash of a
 * password that nobody knows.
 */
const NOBODY = '$2b$10$7Lc.1wffkuXCcWWjTdA88eWkHb2P9eWpd/TWn2jtzmfrQQ6WU6L62'

@Injectable()
export class AuthService {
  /** Hashes of passwords by e-mail address. */
  private readonly users = new Map<string, string>(
    existsSync('users.json') ? JSON.parse(readFileSync('users.json', 'utf8')) : [],
  )

  /** Whether there was no such user before. */
  async register(email: string, password: string): Promise<boolean> {
    const hash = await bcrypt.hash(password, COST)
    if (this.users.has(email)) return false
    this.users.set(email, hash)
    writeFileSync('users.json', JSON.stringify([...this.users]))
    return true
  }

  isRight(email: string, password: string): Promise<boolean> {
    return bcrypt.compare(password, this.users.get(email) ?? NOBODY)
  }
}
