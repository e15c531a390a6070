import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { Providers } from '../../chaos/clients/providers.ts';
import { Traffic } from '../../chaos/clients/traffic.ts';
import { Journal, readJournals } from '../../chaos/journal.ts';
import { PAID_KEY_NAME } from '../../chaos/world.ts';
import { sourceOf } from '../../db1/supabase/functions/_shared/webhook/backfill/sources.ts';

/** One of the first payments of this seed tells nothing that can take effect. */
const SEED = 1;
const LANES = 4;
const PER_SECOND = 2_000;

describe('a provider', () => {
  let dir: string;
  let journal: Journal;
  let door: Server;
  let traffic: Traffic;
  const heard: { id: string; isPoison: boolean; isNoted: boolean; isNotedAsPoison: boolean }[] = [];

  beforeEach(async () => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-providers-'));
    journal = new Journal(dir);
    // It takes everything, but a sender of poison never gets the answer: the run is over by then.
    door = createServer(async (request, response) => {
      const { id, data } = JSON.parse(await text(request));
      const { event, poison } = readJournals(dir);
      const isPoison = data.object.currency === 'none';
      heard.push({
        ...{ id, isPoison },
        isNoted: event.some(({ eventId }) => eventId === id),
        isNotedAsPoison: poison.some((one) => one.id === id),
      });
      if (isPoison) {
        traffic.close(0);
        request.socket.destroy();
      } else response.end('{}');
    });
    door.listen(0, '127.0.0.1');
    await once(door, 'listening');
    const { port } = door.address() as { port: number };
    traffic = new Traffic({ journal, ports: [port], startedMs: performance.now() });
  });
  afterEach(() => {
    traffic.agent.destroy();
    door.close();
    journal.close();
    rmSync(dir, { recursive: true });
  });

  it('notes an event, and that it cannot take effect, before anybody hears of it', async () => {
    await new Providers(traffic, SEED, 'secret').run(LANES, PER_SECOND);
    assert.ok(
      heard.some(({ isPoison }) => isPoison),
      'every event could take effect',
    );
    assert.deepEqual(
      heard.filter(({ isNoted, isPoison, isNotedAsPoison }) => !isNoted || isPoison !== isNotedAsPoison),
      [],
    );
  });
});

// Seed 33: the comparison recorded events of paid orders at an endpoint of the providers, too.
it('the endpoints of providers have no key that workers would ask the stand-in with', () => {
  assert.notEqual(sourceOf('stripe')?.keyName, PAID_KEY_NAME);
});
