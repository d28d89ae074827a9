// Garbage collection that a test can rely on.
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { until } from '@spillway/infra/processes/until'

setFlagsFromString('--expose-gc')
const collectGarbage: () => void = runInNewContext('gc')

/** Resolves when nothing in this process holds on to it any more. */
export async function forgotten(reference: WeakRef<object>): Promise<void> {
  await until(
    () => {
      collectGarbage()
      return reference.deref() === undefined
    },
    { what: 'that it is forgotten' },
  )
}
