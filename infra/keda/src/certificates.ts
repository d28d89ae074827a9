// Certificates of a cluster's own authorities, made by OpenSSL for one run.
import { join } from 'node:path'
import { run } from '@spillway/helm/command'

/** Files in PEM. */
export interface Certificate {
  certFile: string
  keyFile: string
}

const VALID_DAYS = '7'
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', VALID_DAYS]

/** Makes an authority of this name in a folder. */
export async function createAuthority(dir: string, name: string): Promise<Certificate> {
  const files = filesOf(dir, name)
  const extensions = [
    '-addext',
    'basicConstraints=critical,CA:TRUE',
    '-addext',
    'keyUsage=critical,keyCertSign,cRLSign',
  ]
  await run('openssl', ['req', '-x509', ...KEY, '-subj', `/CN=${name}`, ...extensions, ...output(files)])
  return files
}

/**
 * Issues a certificate that is good for clients and, on the loopback interface, for servers.
 * To Kubernetes `name` is the user and `group` their group.
 */
export async function issue(
  dir: string,
  authority: Certificate,
  { name, group, hosts = [] }: { name: string; group?: string; hosts?: string[] },
): Promise<Certificate> {
  const files = filesOf(dir, name.replaceAll(':', '-'))
  const names = ['DNS:localhost', 'IP:127.0.0.1', ...hosts.map((host) => `DNS:${host}`)].join(',')
  const extensions = [
    ...['-addext', 'basicConstraints=critical,CA:FALSE', '-addext', `subjectAltName=${names}`],
    ...['-addext', 'keyUsage=critical,digitalSignature', '-addext', 'extendedKeyUsage=serverAuth,clientAuth'],
  ]
  const subject = `${group === undefined ? '' : `/O=${group}`}/CN=${name}`
  const signer = ['-CA', authority.certFile, '-CAkey', authority.keyFile]
  await run('openssl', ['req', '-x509', ...KEY, '-subj', subject, ...signer, ...extensions, ...output(files)])
  return files
}

function filesOf(dir: string, name: string): Certificate {
  return { certFile: join(dir, `${name}.crt`), keyFile: join(dir, `${name}.key`) }
}

function output({ certFile, keyFile }: Certificate): string[] {
  return ['-out', certFile, '-keyout', keyFile]
}
