// Connects to a database, and creates it if it does not exist.
import type { SqlDriverAdapter } from '@prisma/driver-adapter-utils'
import { connectForScripts } from './connection.js'
import { databaseProblem, driverCause, isDatabaseUnavailable } from './errors.js'

/**
 * The caller disposes of the connection.
 *
 * @throws one sentence, without the password, when the database can neither be used nor created
 */
export async function connectOrCreate(url: string): Promise<SqlDriverAdapter> {
  try {
    return await connectForScripts(url)
  } catch (error) {
    if (driverCause(error)?.kind !== 'DatabaseDoesNotExist') throw unusable(url, error)
  }
  try {
    await createDatabase(url)
    return await connectForScripts(url)
  } catch (error) {
    throw unusable(url, error)
  }
}

async function createDatabase(url: string): Promise<void> {
  const maintenance = new URL(url)
  const name = decodeURIComponent(maintenance.pathname.slice(1))
  maintenance.pathname = '/postgres'
  const connection = await connectForScripts(maintenance.href)
  try {
    await connection.executeScript(`CREATE DATABASE "${name.replaceAll('"', '""')}"`)
  } catch (error) {
    // Another process created it: PostgreSQL reports that by the name, or as a conflict in its catalogue.
    const kind = driverCause(error)?.kind
    if (kind !== 'DatabaseAlreadyExists' && kind !== 'UniqueConstraintViolation') throw error
  } finally {
    await connection.dispose()
  }
}

function unusable(url: string, error: unknown): unknown {
  if (!isDatabaseUnavailable(error) && !driverCause(error)) return error
  const { host, pathname } = new URL(url)
  return new Error(`The database ${pathname.slice(1)} at ${host} cannot be used: ${databaseProblem(error)}.`, {
    cause: error,
  })
}
