/** Finds what is kept for a route by the method and path of a request, by Fastify's router. */
import { METHODS } from 'node:http'
import createRouter, { type HTTPMethod } from 'find-my-way'

const isMethod = (method: string): method is HTTPMethod => METHODS.includes(method)

export class RouteTable<T> {
  readonly #router = createRouter()
  readonly #added = new Set<HTTPMethod>()

  /** @param url as routes are declared, with parameters and wildcards */
  add(methods: string | readonly string[], url: string, value: T): void {
    for (const method of [methods].flat().filter(isMethod)) {
      this.#router.on(method, url, () => undefined, value)
      this.#added.add(method)
    }
  }

  /** @param path without a query */
  find(method: string, path: string): T | undefined {
    return isMethod(method) ? this.#router.find(method, path)?.store : undefined
  }

  /** The methods of the routes that match a path. */
  methodsOf(path: string): string[] {
    return [...this.#added].filter((method) => this.find(method, path) !== undefined)
  }
}
