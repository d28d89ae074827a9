// kubectl, and Helm, as an administrator of the cluster.
import { dirname } from 'node:path'
import { run } from '@spillway/local/processes/run'

export type Kubectl = ReturnType<typeof kubectlFor>

export function kubectlFor(kubeconfig: string, kubectl: string, helm: string) {
  const env = { PATH: process.env.PATH, HOME: dirname(kubeconfig), KUBECONFIG: kubeconfig }
  const apply = (filename: string, input = '', ...args: string[]): Promise<string> =>
    run(kubectl, ['apply', '--server-side', ...args, '--filename', filename], { env, input })
  return {
    /** Applies one object, by the server. */
    apply: (object: unknown) => apply('-', JSON.stringify(object)),
    /** Applies every file of a folder, by the server. */
    applyFiles: (dir: string) => apply(dir),
    /** Has the server check the objects of a YAML text without applying them. Returns a line about each. */
    async dryRun(yaml: string, namespace: string) {
      const output = await apply('-', yaml, '--dry-run=server', '--validate=strict', '--namespace', namespace)
      return output.trim().split('\n')
    },
    /** Runs Helm and returns its output. */
    helm: (...args: string[]) => run(helm, args, { env }),
  }
}
