// kubectl, and Helm, as an administrator of the cluster.
import { join } from 'node:path'
import { run } from '@spillway/helm/command'

export interface Kubectl {
  /** Applies one object, by the server. */
  apply(object: unknown): Promise<void>
  /** Applies every file of a folder, by the server. */
  applyFiles(dir: string): Promise<void>
  /** Lets the server check the objects of a YAML text, all of them, and apply none. Gives what it says of each. */
  dryRun(yaml: string, namespace: string): Promise<string[]>
  /** Runs Helm and gives what it prints. */
  helm(...args: string[]): Promise<string>
}

/** @param programs where kubectl is, and Helm */
export function kubectlFor(kubeconfig: string, programs: { kubernetes: string; checks: string }): Kubectl {
  const env = { PATH: process.env.PATH, HOME: join(kubeconfig, '..'), KUBECONFIG: kubeconfig }
  const kubectl = (args: string[], input?: string): Promise<string> =>
    run(join(programs.kubernetes, 'kubectl'), args, { env, ...(input === undefined ? {} : { input }) })
  return {
    async apply(object) {
      await kubectl(['apply', '--server-side', '--filename', '-'], JSON.stringify(object))
    },
    async applyFiles(dir) {
      await kubectl(['apply', '--server-side', '--filename', dir])
    },
    async dryRun(yaml, namespace) {
      const args = ['apply', '--server-side', '--dry-run=server', '--validate=strict', '--namespace', namespace]
      return (await kubectl([...args, '--filename', '-'], yaml)).trim().split('\n')
    },
    helm: (...args) => run(join(programs.checks, 'helm'), args, { env }),
  }
}
