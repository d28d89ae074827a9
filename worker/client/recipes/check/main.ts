// The second half of `pnpm check:recipes`: a hundred users log in to each recipe at once, before the change and after it in both modes. With
// names of recipes, only to those. Ends with 1 when a goal is missed.
import { copyFile, mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { runWithKeeper } from '@spillway/local/processes/command'
import type { Keeper } from '@spillway/local/processes/keeper'
import { UserError } from '@spillway/local/processes/user-error'
import { buildEngine } from '@spillway/local/start/engine'
import { pack } from '../../packaging/pack.ts'
import { goalsMissed, type Mode, type Row, toTable } from './goals.ts'
import { type Installed, installRecipe } from './install.ts'
import { type Recipe, recipes, USERS_FILE } from './recipes.ts'
import { cores, moveAside, startQueue } from './stage.ts'
import { startRecipe, type User } from './start.ts'
import { measureStorm } from './storm.ts'

const SECONDS = 15
const USERS = 100
const users: User[] = Array.from({ length: USERS }, (_, n) => ({
  email: `user-${n}@example.com`,
  password: 'correct horse battery staple',
}))

async function measured(recipe: Recipe, { before, after }: Installed, keeper: Keeper, dir: string): Promise<Row[]> {
  const rows: Row[] = []
  const measure = async (mode: Mode, folder: string, env: NodeJS.ProcessEnv = {}) => {
    const started = await startRecipe(recipe, { folder, cores, env, keeper })
    try {
      if (mode === 'before') await Promise.all(users.map(started.register))
      rows.push({ recipe: recipe.name, mode, ...(await measureStorm(started, { users, seconds: SECONDS })) })
      console.log(`${recipe.name}, ${mode}`)
    } finally {
      await started.close()
    }
  }
  await measure('before', before)
  await copyFile(join(before, USERS_FILE), join(after, USERS_FILE))
  await measure('after, without Redis', after)
  const queue = await startQueue(keeper, dir)
  try {
    await measure('after, with the queue', after, queue.env)
  } finally {
    await queue.close()
  }
  return rows
}

await runWithKeeper(async (keeper) => {
  const names = process.argv.slice(2)
  const chosen = recipes.filter(({ name }) => names.length === 0 || names.includes(name))
  if (chosen.length === 0) throw new UserError(`The recipes are ${recipes.map(({ name }) => name).join(', ')}.`)
  await buildEngine(keeper, console.log)
  const dir = await mkdtemp(join(tmpdir(), 'spillway-recipes-'))
  try {
    const packed = join(dir, 'packed')
    await mkdir(packed)
    const tarball = await pack(packed)
    const installed = new Map<Recipe, Installed>()
    for (const recipe of chosen) {
      console.log(`${recipe.name}: installing`)
      installed.set(recipe, await installRecipe(recipe, tarball, join(dir, recipe.name)))
    }
    moveAside()
    const rows: Row[] = []
    for (const [recipe, folders] of installed) rows.push(...(await measured(recipe, folders, keeper, dir)))
    console.table(toTable(rows))
    const missed = goalsMissed(rows)
    for (const sentence of missed) console.log(sentence)
    if (missed.length > 0) process.exitCode = 1
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
})
