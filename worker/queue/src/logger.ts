/** The logger interface of the client: any Pino or Fastify logger fits. */

type LogLine = (facts: object, message: string) => void

export interface Logger {
  error: LogLine
  warn: LogLine
  info: LogLine
  debug: LogLine
}
