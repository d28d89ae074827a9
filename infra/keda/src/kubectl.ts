// kubectl, and Helm, as an administrator of the cluster.
import { dirname } from 'node:path'
import { run } from '@spillway/local/processes/run'

export interface Kubectl {
  /** Applies one object, by the server. */
  apply(object: unknown): Promise<void>
  /** Applies every file of a folder, by the server. */
  applyFiles(dir: string): Promise<void>
  /** Has the server check the objects of a YAML text without applying them. Returns a line about each. */
  dryRun(yaml: string, namespace: string): Promise<string[]>
  /** Runs Helm and returns its output. */
  helm(...args: string[]): Promise<string>
}

export function kubectlFor(kubeconfig: string, kubectl: string, helm: string): Kubectl {
  const env = { PATH: process.env.PATH, HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig }
  const apply = (filename: string, input = '', ...args: string[]): Promise<string> =>
    run(kubectl, ['apply', '--server-side', ...args, '--filename', filename], { env, input })
  return {
    apply: async (object) => void (await apply('-', JSON.stringify(object))),
    applyFiles: async (dir) => void (await apply(dir)),
    async dryRun(yaml, namespace) {
      const output = await apply('-', yaml, '--dry-run=server', '--validate=strict', '--namespace', namespace)
      return output.trim().split('\n')
    },
    helm: (...args) => run(helm, args, { env }),
  }
}
