// The second half of `pnpm --filter @spillway/client recipes`: a hundred users log in to each recipe at once, before the change and after it in both modes. With
// names of recipes, only to those; `scripts` measures scripts. Ends with 1 when a goal is missed.
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { runWithKeeper } from '@spillway/infra/processes/command'
import { UserError } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { backgroundLoad } from '@spillway/infra/processes/processor-time'
import { buildEngine, hasEngine, pack } from '@spillway/infra/start/build'
import { goalsMissed, type Mode, type Row, toTable, wasBusy } from './goals.ts'
import { type Installed, installRecipe } from './install.ts'
import { express, type Recipe, recipes, USERS_FILE } from './recipes.ts'
import { measureScripts } from './scripts.ts'
import { cores, moveAside, startQueue } from './stage.ts'
import { startRecipe } from './start.ts'
import { measureStorms, users } from './storm.ts'

const withoutHashing = join(import.meta.dirname, 'without-hashing.cjs')
const OUTPUT_TOLD = 2_000
const LOOK_FOR_MS = 1_000
/** Named as a recipe is. */
const SCRIPTS = 'scripts'

async function measured(recipe: Recipe, { before, after }: Installed, keeper: Keeper, dir: string): Promise<Row[]> {
  const rows: Row[] = []
  const measure = async (mode: Mode, folder: string, env: NodeJS.ProcessEnv = {}) => {
    const takenByOthers = await backgroundLoad(LOOK_FOR_MS)
    const started = await startRecipe(recipe, { folder, cores, env, keeper })
    try {
      if (mode === 'before') await Promise.all(users.map(started.register))
      console.log(`${recipe.name}, ${mode}`)
      const found = await measureStorms(recipe, started.url, dirname(folder))
      rows.push({ recipe: recipe.name, mode, takenByOthers, ...found })
      return found
    } catch (error) {
      // What the application itself said.
      console.error(started.output().slice(-OUTPUT_TOLD))
      throw error
    } finally {
      await started.close()
    }
  }
  await measure('before', before)
  await copyFile(join(before, USERS_FILE), join(after, USERS_FILE))
  const { loginsPerSecond } = await measure('after, without Redis', after)
  const queue = await startQueue(keeper, join(dir, recipe.name))
  try {
    await measure('after, with the queue', after, queue.env)
  } finally {
    await queue.close()
  }
  await measure('without hashing', before, {
    NODE_OPTIONS: `--require=${withoutHashing}`,
    RECIPE_HASH_MS: String(1_000 / loginsPerSecond),
  })
  return rows
}

await runWithKeeper(async (keeper) => {
  const names = process.argv.slice(2)
  const isChosen = (name: string) => names.length === 0 || names.includes(name)
  const chosen = recipes.filter(({ name }) => isChosen(name))
  if (chosen.length === 0 && !isChosen(SCRIPTS))
    throw new UserError(`The recipes are ${recipes.map(({ name }) => name).join(', ')} and ${SCRIPTS}.`)
  await buildEngine(keeper, console.log)
  const dir = await mkdtemp(join(tmpdir(), 'spillway-recipes-'))
  try {
    const tarball = await pack('worker/client', dir)
    const installed = new Map<Recipe, Installed>()
    for (const recipe of chosen) {
      console.log(`${recipe.name}: installing`)
      installed.set(recipe, await installRecipe(recipe, tarball, join(dir, recipe.name)))
    }
    if (isChosen(SCRIPTS)) {
      console.log(`${SCRIPTS}: installing`)
      await measureScripts((await installRecipe(express, tarball, join(dir, SCRIPTS))).before, hasEngine())
    }
    if (chosen.length === 0) return
    moveAside()
    const rows: Row[] = []
    for (const [recipe, folders] of installed) rows.push(...(await measured(recipe, folders, keeper, dir)))
    console.table(toTable(rows))
    if (wasBusy(rows)) console.log('Others kept the machine busy: measure again when it has nothing else to do.')
    const missed = goalsMissed(rows, hasEngine())
    for (const sentence of missed) console.log(sentence)
    if (missed.length > 0) process.exitCode = 1
  } finally {
    await rm(dir, { recursive: true, force: true })
  }
})
