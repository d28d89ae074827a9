// `pnpm --filter @spillway/loadtests oracle`: whether the times of a gateway's answers tell which addresses have an account, and of which kind.
import { runCommand, runWithKeeper } from '@spillway/infra/processes/command'
import { parseCommandLine, whole } from '@spillway/infra/processes/command-line'
import type { Keeper } from '@spillway/infra/processes/keeper'
import { openSpillway } from '@spillway/infra/rig'
import { startOwnServices } from '@spillway/infra/rig/services'
import { buildEngine } from '@spillway/infra/start/build'
import { askInTurn, broken, compareAll, isBlind, LEVEL, table } from './compare.ts'
import { challengingSettings, openQuestions, settings, startMailSink } from './questions.ts'

const SAMPLES = 1_000

const help = `pnpm --filter @spillway/loadtests oracle [--samples n]

Asks a gateway with a worker, in random turn, for logins to accounts of several kinds and to none, for new passwords, registrations and
changes of address, and compares the times of its answers. Says which kinds can be told apart, by how many milliseconds, and fails if
SECURITY.md says that they cannot. In about six minutes; run it on a machine that does nothing else.

  --samples n   answers for each of the kinds, about [${SAMPLES}]
  --help        prints this
`

async function oracle(keeper: Keeper, samples: number): Promise<void> {
  console.log('Building, and starting PostgreSQL and Redis ...')
  if (process.env.HASH_ENGINE !== 'packages') await buildEngine(keeper, console.log)
  // Durable, because a commit takes its time in production.
  const packages = ['@spillway/loadtests']
  const services = await startOwnServices({ keeper, purpose: 'load', packages, durable: true })
  const { databaseUrl, redisUrl } = services
  const mails = await startMailSink()
  const { HASH_ENGINE } = process.env
  const [gatewayEnv, workerEnv] = [mails.env, { HASH_ENGINE }]
  const spillway = openSpillway({ databaseUrl, redisUrl, keeper, keepOnly: 'nothing', gatewayEnv, workerEnv })
  try {
    const [gateway, challenging] = await Promise.all([
      spillway.gateway({ env: settings }),
      spillway.gateway({ env: challengingSettings }),
      spillway.worker(),
    ])
    await spillway.knowsWorkers()
    const urls = { url: gateway.url, challengingUrl: challenging.url }
    const { questions, close } = await openQuestions({ databaseUrl, ...urls, accounts: samples })
    const pairs = compareAll(await askInTurn(questions, { samples, stop: () => keeper.closing }).finally(close))
    if (keeper.closing) return
    console.log(table(pairs))
    console.log(
      `Two-sample Kolmogorov-Smirnov: ${pairs.length} comparisons, at ${100 * LEVEL} % for all of them together (Bonferroni).`,
    )
    if (broken(pairs).length > 0) fail('What SECURITY.md says to be alike can be told apart.')
    else if (isBlind(pairs))
      fail('Not even what is known to differ was told apart, so that this says nothing: is the machine busy?')
  } finally {
    await spillway.close()
    await mails.close()
    await services.close()
  }
}

function fail(sentence: string): void {
  console.log(sentence)
  process.exitCode = 1
}

await runCommand(async () => {
  const { values } = parseCommandLine('pnpm --filter @spillway/loadtests oracle', process.argv.slice(2), {
    samples: { type: 'string' },
  })
  if (values.help) return console.log(help)
  const samples = whole('--samples', values.samples ?? String(SAMPLES), { least: 100 })
  await runWithKeeper((keeper) => oracle(keeper, samples))
})
