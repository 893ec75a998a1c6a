import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nkeys as untypedNkeys } from 'nats';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { NatsLink } from '../../broker/nats-link.js';
import { freshPrefix, startTestNode } from '../support/nats-bus.js';
import { natsServers } from '../support/servers/binaries.js';
import { startNats, type NatsServers } from '../support/servers/nats-kit.js';
import { eventually } from '../support/signal.js';

/** What the tests need of keys; the client hands its library of them on without types. */
interface KeyPair {
  getPublicKey(): string;
  getSeed(): Uint8Array;
  sign(bytes: Uint8Array): Uint8Array;
}
const nkeys = untypedNkeys as Record<'createOperator' | 'createAccount' | 'createUser', () => KeyPair>;

const text = new TextEncoder();

function base64Url(bytes: Uint8Array | string): string {
  return Buffer.from(bytes).toString('base64url');
}

/** A token of the kind that `nsc` makes: claims that one key signs of another. */
function jwt(issuer: KeyPair, subject: KeyPair, nats: Record<string, unknown>): string {
  const header = base64Url(JSON.stringify({ typ: 'JWT', alg: 'ed25519-nkey' }));
  const claims = base64Url(
    JSON.stringify({
      jti: subject.getPublicKey(),
      iat: Math.floor(Date.now() / 1000),
      iss: issuer.getPublicKey(),
      name: 'test',
      sub: subject.getPublicKey(),
      nats: { version: 2, ...nats },
    }),
  );
  return `${header}.${claims}.${base64Url(issuer.sign(text.encode(`${header}.${claims}`)))}`;
}

const noLimits = { subs: -1, data: -1, payload: -1 };
const accountLimits = {
  ...noLimits,
  ...{ imports: -1, exports: -1, wildcards: true, conn: -1, leaf: -1 },
  ...{ mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 },
};

/** A server's own authority, and credentials files of users whom it knows. */
function createAuthority() {
  const operator = nkeys.createOperator();
  const account = nkeys.createAccount();
  const system = nkeys.createAccount();
  const accountJwt = (key: KeyPair, limits: object): string =>
    jwt(operator, key, { type: 'account', limits });
  const config = [
    `operator: ${jwt(operator, operator, { type: 'operator' })}`,
    `system_account: ${system.getPublicKey()}`,
    'resolver: MEMORY',
    'resolver_preload: {',
    `  ${account.getPublicKey()}: ${accountJwt(account, accountLimits)}`,
    // The account of the server itself may not have JetStream.
    `  ${system.getPublicKey()}: ${accountJwt(system, { ...accountLimits, mem_storage: 0, disk_storage: 0 })}`,
    '}',
  ].join('\n');
  return {
    config,
    credsOf: (user: KeyPair, signer: KeyPair = account): string =>
      credsFile(jwt(signer, user, { type: 'user', ...noLimits }), user),
  };
}

function credsFile(token: string, user: KeyPair): string {
  const seed = new TextDecoder().decode(user.getSeed());
  return [
    '-----BEGIN NATS USER JWT-----',
    token,
    '------END NATS USER JWT------',
    '',
    '-----BEGIN USER NKEY SEED-----',
    seed,
    '------END USER NKEY SEED------',
    '',
  ].join('\n');
}

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'topicast-creds-'));
});
afterAll(() => rm(folder, { recursive: true }));

/** The public keys of those who are connected. */
async function usersOf(servers: NatsServers): Promise<(string | undefined)[]> {
  const response = await fetch(`${servers.nodes[0]!.monitor}/connz?auth=1`);
  const { connections } = (await response.json()) as { connections: { authorized_user?: string }[] };
  return connections.map((connection) => connection.authorized_user);
}

describe.each(natsServers())('a credentials file, nats-server $version', ({ version }) => {
  it('lets a node in, and the one that has replaced it at the next dial', async () => {
    const authority = createAuthority();
    const servers = await startNats({ version, config: authority.config });
    const creds = join(folder, `node-${version}.creds`);
    const [first, second] = [nkeys.createUser(), nkeys.createUser()];
    await writeFile(creds, authority.credsOf(first));
    const node = await startTestNode({ servers: servers.urls, prefix: freshPrefix(), creds });
    const hosted = await node.host('item.1');
    await node.store('item.1', 1);
    await node.signal.until('it', () => hosted.texts.length === 1);
    expect(await usersOf(servers)).toEqual([first.getPublicKey()]);

    await writeFile(creds, authority.credsOf(second));
    await servers.restart(0);
    await node.signal.until('the link is back', () => node.bus.connected);
    await eventually('the second user is connected', async () => {
      return (await usersOf(servers)).includes(second.getPublicKey());
    });
    await node.stop();
    await servers.stop();
  });

  it('of a user whom another account has signed lets nobody in', async () => {
    const authority = createAuthority();
    const servers = await startNats({ version, config: authority.config });
    const creds = join(folder, `stranger-${version}.creds`);
    await writeFile(creds, authority.credsOf(nkeys.createUser(), nkeys.createAccount()));
    const opening = NatsLink.open({ servers: servers.urls, name: 'test', creds });
    await expect(opening).rejects.toMatchObject({ code: 'unavailable' });
    await expect(NatsLink.open({ servers: servers.urls, name: 'test' })).rejects.toMatchObject({
      code: 'unavailable',
    });
    await servers.stop();
  });

  it('proves the key of a user whom the server lists by it', async () => {
    const user = nkeys.createUser();
    const config = `authorization { users: [{ nkey: ${user.getPublicKey()} }] }`;
    const servers = await startNats({ version, config });
    const creds = join(folder, `nkey-${version}.creds`);
    // Such a server reads the key alone.
    await writeFile(creds, credsFile(jwt(nkeys.createAccount(), user, { type: 'user', ...noLimits }), user));
    const node = await startTestNode({ servers: servers.urls, prefix: freshPrefix(), creds });
    expect(await node.store('item.1', 1)).toMatchObject({ offset: 1 });
    expect(await usersOf(servers)).toEqual([user.getPublicKey()]);
    await node.stop();
    await writeFile(creds, credsFile('none', nkeys.createUser()));
    await expect(NatsLink.open({ servers: servers.urls, name: 'test', creds })).rejects.toMatchObject({
      code: 'unavailable',
    });
    await servers.stop();
  });
});
