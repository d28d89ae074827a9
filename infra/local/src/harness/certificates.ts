// Certificates of an authority of one's own, made by OpenSSL for one run.
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { run } from '../processes/run.ts'

export interface Certificate {
  certFile: string
  keyFile: string
}

const VALID_DAYS = '7'
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', VALID_DAYS]

export const LOOPBACK = ['DNS:localhost', 'IP:127.0.0.1']

/** Whether OpenSSL can sign in one step: LibreSSL and older versions cannot. */
export function canIssue(): boolean {
  return /^OpenSSL [3-9]/.test(String(spawnSync('openssl', ['version']).stdout))
}

export async function createAuthority(dir: string, name: string): Promise<Certificate> {
  return await request(dir, name, [
    ...['-subj', `/CN=${name}`, '-addext', 'basicConstraints=critical,CA:TRUE'],
    ...['-addext', 'keyUsage=critical,keyCertSign,cRLSign'],
  ])
}

/**
 * Issues a certificate for clients and servers. To Kubernetes, `name` is the user, with a `group`.
 * `hosts` are what a server is reached by, as OpenSSL writes them.
 */
export async function issue(
  dir: string,
  authority: Certificate,
  { name, group, hosts = LOOPBACK }: { name: string; group?: string; hosts?: string[] },
): Promise<Certificate> {
  const subject = `${group === undefined ? '' : `/O=${group}`}/CN=${name}`
  return await request(dir, name.replaceAll(':', '-'), [
    ...['-subj', subject, '-CA', authority.certFile, '-CAkey', authority.keyFile],
    ...['-addext', `subjectAltName=${hosts.join(',')}`, '-addext', 'basicConstraints=critical,CA:FALSE'],
    ...['-addext', 'keyUsage=critical,digitalSignature', '-addext', 'extendedKeyUsage=serverAuth,clientAuth'],
  ])
}

async function request(dir: string, name: string, args: string[]): Promise<Certificate> {
  const files = { certFile: join(dir, `${name}.crt`), keyFile: join(dir, `${name}.key`) }
  const output = ['-out', files.certFile, '-keyout', files.keyFile]
  await run('openssl', ['req', '-x509', ...KEY, ...args, ...output])
  return files
}
