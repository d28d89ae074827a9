/** Finds what is kept for a route by the method and path of a request, with the router that Fastify has. */
import { METHODS } from 'node:http'
import createRouter, { type HTTPMethod } from 'find-my-way'

export interface RouteTable<T> {
  /** @param url as routes are declared, with parameters and wildcards */
  add(methods: string | readonly string[], url: string, value: T): void
  /** @param path without a query */
  find(method: string, path: string): T | undefined
  /** The methods of the routes that match a path. */
  methodsOf(path: string): string[]
}

const isMethod = (method: string): method is HTTPMethod => METHODS.includes(method)

export function createRouteTable<T>(): RouteTable<T> {
  const router = createRouter()
  const added = new Set<HTTPMethod>()
  const find = (method: HTTPMethod, path: string): T | undefined => router.find(method, path)?.store
  return {
    add(methods, url, value) {
      for (const method of [methods].flat().filter(isMethod)) {
        router.on(method, url, () => undefined, value)
        added.add(method)
      }
    },
    find: (method, path) => (isMethod(method) ? find(method, path) : undefined),
    methodsOf: (path) => [...added].filter((method) => find(method, path) !== undefined),
  }
}
