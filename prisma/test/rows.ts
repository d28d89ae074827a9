// One query over a connection of its own, so that tests see what any other client would.
import { connectForScripts } from '../src/connection.ts'

/** The rows, each a list of its columns. */
export async function rows(url: string, sql: string): Promise<unknown[][]> {
  const connection = await connectForScripts(url)
  try {
    return (await connection.queryRaw({ sql, args: [], argTypes: [] })).rows
  } finally {
    await connection.dispose()
  }
}
