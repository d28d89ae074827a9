/** What the client needs of a logger: Pino's form, so that any Pino or Fastify logger will do. */

type LogLine = (facts: object, message: string) => void

export interface Logger {
  error: LogLine
  warn: LogLine
  info: LogLine
  debug: LogLine
}
