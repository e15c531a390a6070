// A backfill that is killed or stopped in the middle is run again, and nothing is recorded twice.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { PROJECT } from '../../support/dev.ts';
import { WebhookWorld } from '../world.ts';
import { backfill, envFor, hourAgo, type Providers, startProviders, stripeEvent } from './support.ts';

describe('a backfill in a process of its own', () => {
  let world: WebhookWorld;
  let providers: Providers;
  let env: Record<string, string>;
  before(async () => {
    world = await WebhookWorld.start();
    providers = await startProviders();
    env = envFor(providers, world.databases.db2.url);
    await world.addEndpoint('stripe', 'stripe', 'queued');
    for (let at = 0; at < 450; at++) providers.stripe.send(stripeEvent(`evt_${at}`));
  });
  after(async () => {
    await providers?.stop();
    await world?.stop();
  });
  const count = async () => (await world.rows('select from public.webhook_events')).length;

  /** Runs it until the third page is asked for, which waits until the process has ended by the signal. */
  async function endInTheMiddle(signal: NodeJS.Signals) {
    const { server } = providers.stripe;
    let pages = 0;
    const args = ['webhooks', 'backfill', 'stripe', '--since', hourAgo(), '--json'];
    const child = spawn(process.execPath, [join(PROJECT, 'bin', 'sluice.js'), ...args], {
      cwd: '/',
      env: { PATH: process.env.PATH ?? '', ...env },
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let stdout = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      stdout += text;
    });
    const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
    server.gate = async () => {
      if (++pages < 3) return;
      child.kill(signal);
      await ended;
    };
    const code = await ended;
    server.gate = () => Promise.resolve();
    return { code, stdout };
  }

  it('leaves what it recorded when it is killed, and the next run goes on', async () => {
    const { code, stdout } = await endInTheMiddle('SIGKILL');
    assert.deepEqual([code, stdout], [null, '']);
    const left = await count();
    assert.equal(left, 200);
    assert.deepEqual((await backfill(env, 'stripe')).counts, {
      asked: 450,
      known: left,
      new: 450 - left,
      skipped: 0,
    });
    await world.process();
    assert.deepEqual(await world.credited('ann'), { rows: 450, sum: 45_000 });
  });

  it('says how far it came when it is stopped', async () => {
    const { code, stdout } = await endInTheMiddle('SIGTERM');
    assert.equal(code, 1);
    const { status, asked } = JSON.parse(stdout);
    assert.deepEqual([status, asked], ['stopped', 200]);
  });
});
