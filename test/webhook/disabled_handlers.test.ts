// A bad registration disables its handler alone: the events of the others go on, its own wait, and log, doctor and console tell it.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { checkHealth } from '#core/console/health.ts';
import { createDatabase } from '../../src/db/database.ts';
import { createLog } from '../../src/log.ts';
import {
  createFaultTeller,
  type Handlers,
  loadHandlers,
  registerHandlers,
} from '../../src/webhook/handlers.ts';
import { memoryLog } from '../core/support.ts';
import { paymentEvent, WebhookWorld } from './world.ts';

const OWNED = 'payment_intent.succeeded';

const MODULE = `
const apply = async (event, tx) => { await tx.query('insert into public.done values ($1)', [event.eventId]); };
const base = { provider: 'stripe', apply };
export default [
  { ...base, name: 'good', types: ['own.good'] },
  { ...base, name: 'greedy', types: ['own.greedy', '${OWNED}'] },
  { ...base, name: 'late', types: ['own.late', 'own.good'] },
  { ...base, name: 'repeated', types: ['own.repeated', 'own.repeated'] },
  { name: 'lame', provider: 'stripe', types: ['own.lame'] },
  { ...base, name: 'good', types: ['own.other'] },
  { ...base, name: 'starry', types: ['own.*.star'] },
  { ...base, name: 'lost', types: ['own.lost'], webhookId: 'shop' },
  'nothing',
];
`;

const FAULTS = {
  greedy: /^stripe payment_intent\.succeeded belongs to the SQL handler /,
  'handler 6': /^handler 6 has the name of another$/,
  'handler 9': /^handler 9 is not an object$/,
  lame: /^handler 5 has no function apply$/,
  late: /^stripe own\.good is registered twice$/,
  lost: /^handler 8 has a webhookId that is not a UUID$/,
  repeated: /^stripe own\.repeated is registered twice$/,
  starry: /^handler 7 has an invalid type/,
};

describe('of a module with bad handlers', () => {
  let folder: string;
  let world: WebhookWorld;
  let handlers: Handlers;
  const log = memoryLog();

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'sluice-handlers-'));
    const file = join(folder, 'handlers.mjs');
    writeFileSync(file, MODULE);
    handlers = await loadHandlers(file, log);
    world = await WebhookWorld.start(handlers);
    await world.addEndpoint('queued', 'stripe', 'queued');
    await world.addEndpoint('inline', 'stripe', 'inline');
    await world.db2.query('create table public.done (event_id text)');
    await world.process();
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true });
  });

  const post = (endpoint: string, type: string) =>
    world.send(endpoint, 'stripe', paymentEvent(`evt_${endpoint}_${type.replace('.', '_')}`, { type }));
  const states = () =>
    world.rows<{ event_type: string; status: string }>(
      'select event_type, status::text from public.webhook_events order by event_type, status',
    );

  it('the good ones let their events take effect, those of the bad ones wait, and none is skipped', async () => {
    for (const type of ['own.good', 'own.greedy', 'own.late', 'own.repeated', 'own.lame', OWNED])
      assert.equal((await post('queued', type)).status, 200);
    await world.process();
    assert.deepEqual(
      (await states()).map(({ event_type, status }) => `${event_type} ${status}`),
      [
        'own.good success',
        'own.greedy pending',
        'own.lame pending',
        'own.late pending',
        'own.repeated pending',
        `${OWNED} success`,
      ],
    );
  });

  it('an inline delivery to a bad one is recorded, and waits too', async () => {
    const answer = await post('inline', 'own.greedy');
    assert.deepEqual([answer.status, answer.json.status], [200, 'recorded']);
  });

  it('each is told to the log at start, to the health page and the doctor', async () => {
    const db2 = createDatabase({
      url: world.databases.db2.url,
      max: 1,
      applicationName: 'test',
      log: createLog('silent'),
    });
    try {
      const tell = createFaultTeller(log);
      for (let time = 0; time < 2; time++) tell(await registerHandlers(db2, handlers));
      const call = <Row>(name: string, args: Record<string, unknown>) =>
        db2.call<Row>(`public.${name}`, args);
      const checks = await checkHealth({ intakes: [{ call: async () => [] }], db2: call, now: Date.now });
      const disabled = checks.filter(({ kind }) => kind === 'handler');
      assert.deepEqual(
        disabled.map(({ name }) => name).sort(),
        Object.keys(FAULTS)
          .map((name) => `Handler ${name}`)
          .sort(),
      );
      for (const [name, fault] of Object.entries(FAULTS)) {
        const lines = log.lines.filter(({ level, fields }) => level === 'error' && fields?.handler === name);
        assert.ok(lines.length >= 1 && lines.length <= 2, name);
        for (const { message, fields } of lines) {
          assert.equal(message, 'a handler is disabled: its events wait');
          assert.match(String(fields?.fault), fault);
        }
        const check = disabled.find((one) => one.name === `Handler ${name}`);
        assert.deepEqual([check?.status, fault.test(String(check?.detail.fault))], ['down', true], name);
      }
    } finally {
      await db2.end();
    }
  });

  it('those that are mended take up what has waited', async () => {
    const file = join(folder, 'mended.mjs');
    writeFileSync(
      file,
      MODULE.replace(`, '${OWNED}'`, '')
        .replace(", 'own.good']", ']')
        .replace(", 'own.repeated']", ']')
        .replace("types: ['own.lame'] }", "types: ['own.lame'], apply }")
        .replace(/^ {2}\{ \.\.\.base, name: '(good', types: \['own\.other|starry|lost).*$/gm, '')
        .replace("'nothing',", ''),
    );
    const mended = await loadHandlers(file, log);
    // That of the inline endpoint waits for the server that took it, too.
    await world.db2.query(
      'update public.webhook_events set next_attempt_at = now() where next_attempt_at is not null',
    );
    await world.process(mended);
    await world.process(mended);
    assert.deepEqual([...new Set((await states()).map(({ status }) => status))], ['success']);
    assert.deepEqual(await world.rows('select name from webhook.handler_faults order by name'), [
      { name: 'lost' },
      { name: 'starry' },
    ]);
  });
});
