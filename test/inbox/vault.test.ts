// Secrets whose values are in DB2's Vault, while DB2 is away: the environment still has the ones that Vault replaced.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { RunningServer } from '../../src/server/server.ts';
import { addSites, callBody, post, SITE, SECRETS as SITE_SECRETS, signedRequest } from '../calls/support.ts';
import { assertRefusal } from '../server/support.ts';
import { addEndpoint, allowSecrets, SECRETS, send } from '../webhook/world.ts';
import { InboxWorld, until } from './world.ts';

const NAME = 'TWILIO_AUTH_TOKEN';
const OLD = SECRETS[NAME] ?? '';
const NEW = 'n'.repeat(32);
const NEWEST = 'v'.repeat(32);
const SITE_NEW = 'secret-of-the-site-in-vault';
const TOKEN_NEW = 'verify-token-in-vault';

describe('a secret of DB2’s Vault, while DB2 is away', () => {
  let world: InboxWorld;
  let server: RunningServer;
  before(async () => {
    world = await InboxWorld.start();
    await addSites(world.db2);
    await allowSecrets(world.db2, ['WHATSAPP_VERIFY_TOKEN']);
    await addEndpoint(world.db2, 'whatsapp', 'whatsapp', 'queued', {
      verify_token_name: 'WHATSAPP_VERIFY_TOKEN',
    });
    await world.db2.query(`update public.call_sites set on_outage = 'accept' where site_id = $1`, [SITE]);
    await world.db2.query(`create schema vault;
      create table vault.decrypted_secrets (name text, decrypted_secret text);
      insert into vault.decrypted_secrets values ('${NAME}', '${NEW}'), ('SITE_SECRET', '${SITE_NEW}'),
        ('WHATSAPP_VERIFY_TOKEN', '${TOKEN_NEW}')`);
    server = await world.startServer();
    assertRefusal(await world.ring(server, 'CAretired', { secret: OLD }), 401, 'bad_signature');
    assert.equal((await world.ring(server, 'CAbefore', { secret: NEW })).json.status, 'recorded');
    await world.copiedAgain();
  });
  after(() => world?.stop());

  const fresh = async () => {
    world.cut();
    return world.startServer();
  };
  const shakeHands = async (door: RunningServer, token: string) => {
    const query = `hub.mode=subscribe&hub.verify_token=${token}&hub.challenge=42`;
    return (await fetch(`${door.url}/webhooks/whatsapp?${query}`)).status;
  };

  it('is not replaced by the retired one in a new process: both get 503, and nothing is taken', async () => {
    const door = await fresh();
    for (const secret of [OLD, NEW])
      assertRefusal(await world.ring(door, 'CAaway', { secret }), 503, 'database_unavailable');
    const call = (secret: string) => signedRequest(callBody({}), { secret });
    for (const secret of [SITE_SECRETS.SITE_SECRET ?? '', SITE_NEW])
      assertRefusal(await post(door.url, call(secret)), 503, 'database_unavailable');
    for (const token of [SECRETS.WHATSAPP_VERIFY_TOKEN ?? '', TOKEN_NEW])
      assert.equal(await shakeHands(door, token), 503);
    assert.equal(await world.waiting(), 0);
  });

  it('does not keep out what a secret of the environment has signed, nor let in a forgery of that', async () => {
    const door = await fresh();
    const waiting = await world.waiting();
    assert.equal((await world.post(door, 'stripe', 'evt_environment')).json.status, 'accepted');
    const forged = await world.post(door, 'stripe', 'evt_forged', { secret: 'whsec_of_a_forger_xxxx' });
    assertRefusal(forged, 401, 'bad_signature');
    const beside = signedRequest(callBody({}), { secret: SITE_SECRETS.OLD_SECRET ?? '' });
    assert.deepEqual((await post(door.url, beside)).json, { status: 'accepted' });
    assert.equal(await world.waiting(), waiting + 2);
  });

  it('that was told before it changed refuses no delivery for good', async () => {
    world.heal();
    // The server does not ask again between the change and the outage.
    await world.db2.query(`update vault.decrypted_secrets set decrypted_secret = $1 where name = $2`, [
      NEWEST,
      NAME,
    ]);
    world.cut();
    await until(async () => {
      const { status } = await world.ring(server, 'CAchanged', { secret: NEWEST });
      return status === 503;
    });
    assertRefusal(await world.ring(server, 'CAchanged', { secret: OLD }), 503, 'database_unavailable');
    assert.equal((await world.ring(server, 'CAtold', { secret: NEW })).json.status, 'accepted');
    const unsigned = await send({
      url: `${server.url}/webhooks/twilio`,
      provider: 'twilio',
      body: 'CallSid=CAunsigned',
      headers: { 'content-type': 'application/x-www-form-urlencoded', 'x-twilio-signature': 'x' },
    });
    assertRefusal(unsigned, 401, 'bad_signature');
  });
});
