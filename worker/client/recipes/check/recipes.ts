// The recipes: small applications as the documentation of their frameworks has them, which log users in.
import { join } from 'node:path'

export interface Recipe {
  /** Its folder. */
  name: string
  /** What Node runs in the folder of a version, with arguments. */
  start: readonly [entry: string, ...args: string[]]
  /** Whether it is compiled first, by `npm run build`. */
  isBuilt: boolean
  /** Whether it is installed in a few seconds, so that `pnpm test` can do it. */
  isLight: boolean
  /** Where users register and log in. */
  paths: { register: string; login: string }
}

export const recipesDir = join(import.meta.dirname, '..')
/** The file that each has its users in. */
export const USERS_FILE = 'users.json'
/** What has nothing to do with logins: the first asks the file system, and so the thread pool; the second does not. */
export const neighbours = ['file', 'time'] as const
export type Neighbour = (typeof neighbours)[number]
export const neighbourPath = (name: Neighbour): string => `/${name}`

const own = { register: '/users', login: '/login' }

export const express: Recipe = { name: 'express', start: ['app.js'], isBuilt: false, isLight: true, paths: own }
export const recipes: readonly Recipe[] = [
  express,
  { name: 'fastify', start: ['app.js'], isBuilt: false, isLight: true, paths: own },
  { name: 'nestjs', start: ['dist/main.js'], isBuilt: true, isLight: true, paths: own },
  {
    name: 'nextjs',
    start: ['../node_modules/next/dist/bin/next', 'start'],
    isBuilt: true,
    isLight: false,
    paths: own,
  },
  {
    name: 'better-auth',
    start: ['server.js'],
    isBuilt: false,
    isLight: false,
    paths: { register: '/api/auth/sign-up/email', login: '/api/auth/sign-in/email' },
  },
]
