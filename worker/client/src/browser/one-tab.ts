/** Work that one tab of an origin does at a time. */

/** What is used of the Web Locks API. */
interface Locks {
  request(name: string, whileHeld: () => Promise<void>): Promise<void>
}

/** Does it while no other tab does something of this name, which must also wait for a while after it. Without Web Locks it is done at once. */
export async function oneTabAtATime<T>(name: string, work: () => Promise<T>, afterMs = 0): Promise<T> {
  const locks: Locks | undefined = Reflect.get(globalThis, 'navigator')?.locks
  if (locks === undefined) return work()
  return new Promise((resolve, reject) => {
    const whileHeld = async () => {
      await work().then(resolve, reject)
      await new Promise((later) => setTimeout(later, afterMs))
    }
    locks.request(name, whileHeld).catch(reject)
  })
}
