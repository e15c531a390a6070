import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { WebhookWorld } from './world.ts';

/** A POST of Meta with these messages in it. */
function updates(messages: readonly Record<string, unknown>[]): string {
  const value = {
    messaging_product: 'whatsapp',
    metadata: { phone_number_id: '49111' },
    messages: messages.map((message) => ({ timestamp: '1770000000', type: 'text', ...message })),
  };
  return JSON.stringify({
    object: 'whatsapp_business_account',
    entry: [{ id: '1', changes: [{ field: 'messages', value }] }],
  });
}

describe('a WhatsApp delivery of several updates', () => {
  let world: WebhookWorld;
  before(async () => {
    world = await WebhookWorld.start();
    await world.addEndpoint('inline', 'whatsapp', 'inline');
    await world.addEndpoint('queued', 'whatsapp', 'queued');
    // The poison: an update whose effect can never be taken.
    await world.db2.query(
      `create function public.refuse_poison() returns trigger language plpgsql as $$
       begin
         if new.event_id like '%poison%' then raise exception 'poison' using errcode = 'SL030'; end if;
         if new.event_id like '%upset%' then raise exception 'upset'; end if;
         return new;
       end $$`,
    );
    await world.db2.query(
      `create trigger refuse_poison before insert on public.webhook_side_effects
       for each row execute function public.refuse_poison()`,
    );
  });
  after(() => world?.stop());

  const effects = (like: string) =>
    world.rows('select event_id from public.webhook_side_effects where event_id like $1 order by event_id', [
      like,
    ]);
  const statuses = (like: string) =>
    world.rows(
      'select event_id, status::text from public.webhook_events where event_id like $1 order by event_id',
      [like],
    );

  for (const [mode, status] of [
    ['inline', 500],
    ['queued', 200],
  ] as const) {
    it(`${mode}: two good and one poison are two effects, one dead letter and one answer ${status}`, async () => {
      const ids = ['a', 'poison', 'z'].map((name) => `wamid.${mode}.${name}`);
      const answer = await world.send(mode, 'whatsapp', updates(ids.map((id) => ({ id }))));
      assert.equal(answer.status, status, answer.text);
      await world.process();
      assert.deepEqual(await effects(`message:wamid.${mode}.%`), [
        { event_id: `message:wamid.${mode}.a` },
        { event_id: `message:wamid.${mode}.z` },
      ]);
      assert.deepEqual(await statuses(`message:wamid.${mode}.%`), [
        { event_id: `message:wamid.${mode}.a`, status: 'success' },
        { event_id: `message:wamid.${mode}.poison`, status: 'dead_letter' },
        { event_id: `message:wamid.${mode}.z`, status: 'success' },
      ]);
    });
  }

  it('inline: one that may still succeed makes it 500, and the redelivery does only what is missing', async () => {
    const body = updates([{ id: 'wamid.again.a' }, { id: 'wamid.again.upset' }]);
    assert.equal((await world.send('inline', 'whatsapp', body)).status, 500);
    assert.equal((await effects('message:wamid.again.%')).length, 1);
    await world.db2.query('alter table public.webhook_side_effects disable trigger refuse_poison');
    const again = await world.send('inline', 'whatsapp', body);
    await world.db2.query('alter table public.webhook_side_effects enable trigger refuse_poison');
    assert.equal(again.status, 200, again.text);
    assert.equal((await effects('message:wamid.again.%')).length, 2);
  });

  it('keeps the bytes once for all of them, also when they come again in other company', async () => {
    await world.send('queued', 'whatsapp', updates([{ id: 'wamid.c.1' }, { id: 'wamid.c.2' }]));
    const mixed = updates([{ id: 'wamid.c.1' }, { id: 'wamid.c.3' }]);
    const answer = await world.send('queued', 'whatsapp', mixed);
    assert.deepEqual(answer.json.events, [
      { event_id: 'message:wamid.c.1', status: 'duplicate' },
      { event_id: 'message:wamid.c.3', status: 'recorded' },
    ]);
    const [kept] = await world.rows(
      `select convert_from(b.body, 'UTF8') as body from public.webhook_events e
       join public.webhook_bodies b on b.id = e.body_id where e.event_id = 'message:wamid.c.3'`,
    );
    assert.equal(kept?.body, mixed);
  });

  it('takes a thousand updates in one delivery', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => ({ id: `wamid.many.${index}` }));
    const answer = await world.send('queued', 'whatsapp', updates(many));
    assert.equal(answer.status, 200, answer.text);
    await world.process();
    assert.equal((await effects('message:wamid.many.%')).length, 1_000);
  });

  it('inline: refuses neither of two large deliveries because their updates wait for each other', async () => {
    const count = 600;
    const deliver = async (name: string) => {
      const body = updates(Array.from({ length: count }, (_, index) => ({ id: `wamid.${name}.${index}` })));
      let answer = await world.send('inline', 'whatsapp', body);
      // A busy machine may need more than the 10 s that Meta waits: the redelivery then joins the attempt.
      while (answer.json.error?.code === 'processing_failed')
        answer = await world.send('inline', 'whatsapp', body);
      assert.equal(answer.status, 200, answer.text.slice(0, 200));
      assert.equal((await effects(`message:wamid.${name}.%`)).length, count);
    };
    await Promise.all([deliver('one'), deliver('two')]);
  });
});
