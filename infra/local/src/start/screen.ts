// The output of `pnpm start` when everything is ready.
import type { ClusterOptions } from './member.ts'
import { hostToDial } from './places.ts'

type Cluster = Pick<ClusterOptions, 'environment' | 'gateways' | 'workers' | 'databaseUrl' | 'redisUrl' | 'logDir'>

export function screen(cluster: Cluster, operator: { user: string; password: string }): string {
  const { environment, gateways, workers, databaseUrl, redisUrl, logDir } = cluster
  const ops = (port: string | undefined) => `http://127.0.0.1:${port}`
  const url = (port: string | undefined) => `http://${hostToDial(environment.host)}:${port}`
  const { PORT, OPS_PORT } = gateways[0]?.ports ?? {}
  const rows = [
    ...gateways.map(({ name, ports }) => [name, `${url(ports.PORT)}   ops ${ops(ports.OPS_PORT)}`]),
    ...workers.map(({ name, ports }) => [name, `${' '.repeat(url(PORT).length)}   ops ${ops(ports.OPS_PORT)}`]),
    ['API docs', `${url(PORT)}/docs`],
    ...gateways.flatMap(({ ports: { SERVICE_PORT: port } }) =>
      port === undefined ? [] : [['service API', ops(port)]],
    ),
    ['live page', `${ops(OPS_PORT)}/   user ${operator.user}, password ${operator.password}`],
    ['queues', `${ops(OPS_PORT)}/queues`],
    ['audit', `${ops(OPS_PORT)}/audit`],
    ['runbooks', `${ops(OPS_PORT)}/runbooks`],
    ['ops API', `${ops(OPS_PORT)}/docs`],
    ['PostgreSQL', environment.databaseUrl === undefined ? databaseUrl : 'the one of DATABASE_URL'],
    ['Redis', environment.redisUrl === undefined ? redisUrl : 'the one of REDIS_URL'],
    ['logs', logDir],
  ]
  const body = `-H 'content-type: application/json' -d '{"email":"demo@example.com","password":"a passphrase for the demo"}'`
  return `
Spillway is up. Ctrl-C ends it; data stays for the next start.

${rows.map(([name, value]) => `  ${name?.padEnd(12)}${value}`).join('\n')}

Register, then log in (workers show /metrics, /healthz and /readyz on their ops ports):

  curl -i ${url(PORT)}/v1/users ${body}

  curl -i ${url(PORT)}/v1/login ${body}
`
}
