// The output of `pnpm start` when everything is ready.
import type { LocalEnvironment, Ports } from './places.ts'

interface Places {
  environment: LocalEnvironment
  ports: Ports
  databaseUrl: string
  redisUrl: string
  logDir: string
}

export function screen(places: Places, operator: { user: string; password: string }): string {
  const { environment, ports, databaseUrl, redisUrl, logDir } = places
  const url = (port: number) => `http://127.0.0.1:${port}`
  const [api, ops] = [url(ports.port), url(ports.opsPort)]
  const rows = [
    ['gateway', `${api}   ops ${ops}`],
    ['worker', `${' '.repeat(api.length)}   ops ${url(ports.workerOpsPort)}`],
    ['API docs', `${api}/docs`],
    ...(ports.servicePort === undefined ? [] : [['service API', url(ports.servicePort)]]),
    ['live page', `${ops}/   user ${operator.user}, password ${operator.password}`],
    ['queues', `${ops}/queues`],
    ['audit', `${ops}/audit`],
    ['runbooks', `${ops}/runbooks`],
    ['ops API', `${ops}/docs`],
    ['PostgreSQL', environment.databaseUrl === undefined ? databaseUrl : 'the one of DATABASE_URL'],
    ['Redis', environment.redisUrl === undefined ? redisUrl : 'the one of REDIS_URL'],
    ['logs', logDir],
  ]
  const body = `-H 'content-type: application/json' -d '{"email":"demo@example.com","password":"a passphrase for the demo"}'`
  return `
Spillway is up. Ctrl-C ends it; data stays for the next start.

${rows.map(([name, value]) => `  ${name?.padEnd(12)}${value}`).join('\n')}

Register, then log in (the worker shows /metrics, /healthz and /readyz on its ops port):

  curl -i ${api}/v1/users ${body}

  curl -i ${api}/v1/login ${body}
`
}
