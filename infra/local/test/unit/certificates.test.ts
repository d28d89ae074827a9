// Certificates that are made for one run are what servers and clients ask for.
import assert from 'node:assert/strict'
import { X509Certificate } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { test } from 'vitest'
import { type Certificate, canIssue, createAuthority, issue, LOOPBACK } from '../../src/rig/certificates.ts'
import { scratchDir } from '../../src/rig/namespace.ts'

const read = async ({ certFile }: Certificate) => new X509Certificate(await readFile(certFile))

test.skipIf(canIssue() ? false : 'needs OpenSSL 3')(
  'an authority issues certificates for hosts and for users in groups, and they are told from those of another',
  async (t) => {
    const dir = await scratchDir(t)
    const [authority, other] = [await createAuthority(dir, 'authority'), await createAuthority(dir, 'other')]
    const server = await read(await issue(dir, authority, { name: 'server', hosts: [...LOOPBACK, 'DNS:api.svc'] }))
    assert.equal((await read(authority)).ca, true)
    assert.equal(server.ca, false)
    assert.equal(server.verify((await read(authority)).publicKey), true)
    assert.equal(server.verify((await read(other)).publicKey), false)
    for (const host of ['localhost', 'api.svc']) assert.equal(server.checkHost(host), host)
    assert.equal(server.checkIP('127.0.0.1'), '127.0.0.1')
    assert.equal(server.checkHost('elsewhere'), undefined)
    const user = await read(await issue(dir, authority, { name: 'system:admin', group: 'system:masters' }))
    assert.equal(user.subject, 'O=system:masters\nCN=system:admin')
  },
)
