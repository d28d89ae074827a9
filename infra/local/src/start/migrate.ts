// Migrates a database by the same command as deployments.
import { type Keeper, ToolFailure } from '../processes/keeper.ts'
import { logTail } from '../processes/log-tail.ts'
import { repositoryDir } from '../processes/repository.ts'
import { UserError } from '../processes/user-error.ts'

/** Applies pending migrations, and creates the database if it does not exist. Needs a build. */
export async function migrate(keeper: Keeper, databaseUrl: string): Promise<void> {
  try {
    await keeper.run({
      command: process.execPath,
      args: ['prisma/dist/migrate.js'],
      cwd: repositoryDir,
      env: { ...process.env, DATABASE_URL: databaseUrl },
    })
  } catch (error) {
    throw error instanceof ToolFailure
      ? new UserError(`The database cannot be migrated: ${logTail(error.output)}`)
      : error
  }
}
