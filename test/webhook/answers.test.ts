// What the webhook door answers once a delivery is proven, and whom it tells; and the handshake.

import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import type { Endpoint, EventStatus, Recorded } from '#core/webhook/ports.ts';
import { SECRET_FAULTS } from '#core/webhook/secrets.ts';
import { open } from './routes_support.ts';

describe('the answer to a delivery', () => {
  const updates = (count: number) => {
    const messages = Array.from({ length: count }, (_, index) => ({ id: `wamid.${index}` }));
    return JSON.stringify({ entry: [{ changes: [{ value: { messages } }] }] });
  };
  const several = (outcomes: Recorded['outcome'][], change: Partial<Endpoint> = {}) => {
    const world = open({ provider: 'whatsapp', ...change });
    world.answers.outcomes = outcomes;
    return { ...world, post: () => world.send({ body: updates(outcomes.length) }) };
  };

  for (const [outcomes, status] of [
    [['duplicate', 'recorded', 'quarantined'], 'recorded'],
    [['duplicate', 'body_differs', 'quarantined'], 'quarantined'],
    [['duplicate', 'body_differs'], 'body_differs'],
    [['duplicate', 'duplicate'], 'duplicate'],
  ] as [Recorded['outcome'][], string][])
    it(`to ${outcomes.join(', ')} is called ${status}, and tells of each`, async () => {
      const { json } = await several(outcomes).post();
      assert.deepEqual(json, {
        status,
        events: outcomes.map((outcome, index) => ({ event_id: `message:wamid.${index}`, status: outcome })),
      });
    });

  it('wakes the workers for what is new, and for nothing else', async () => {
    for (const [outcomes, woken] of [
      [['recorded'], 1],
      [['duplicate', 'recorded', 'duplicate'], 1],
      [['duplicate', 'body_differs', 'quarantined'], 0],
    ] as [Recorded['outcome'][], number][]) {
      const { post, seen } = several(outcomes);
      await post();
      assert.equal(seen.woken, woken, outcomes.join());
    }
    const inline = several(['recorded'], { mode: 'inline' });
    await inline.post();
    assert.equal(inline.seen.woken, 0);
  });

  it('comes with a line for a known event with another body, and none for a duplicate', async () => {
    const { post, warnings, metrics } = several(['recorded', 'duplicate', 'body_differs']);
    await post();
    assert.deepEqual(warnings(), [
      {
        level: 'warn',
        message: 'known event with another body',
        fields: { event_id: 'message:wamid.2', webhook_id: 'the webhook', reason: null },
      },
    ]);
    assert.deepEqual(metrics.lines, []);
  });

  it('is the challenge where the provider asks for one, and nothing is recorded', async () => {
    const slack = open({ provider: 'slack' });
    const asked = await slack.send({ body: '{"type":"url_verification","challenge":"3eZbrw1a"}' });
    assert.deepEqual([asked.status, asked.text], [200, '3eZbrw1a']);
    assert.deepEqual(asked.headers, {
      'content-type': 'text/plain; charset=utf-8',
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
    assert.deepEqual(slack.seen.deliveries, []);
  });

  it('is refused while the door closes, after what it has taken', async () => {
    const { send, webhooks } = open();
    await send();
    await webhooks.drain();
    assert.equal((await send()).code, 'shutting_down');
  });
});

describe('a provider that waits', () => {
  beforeEach(() => mock.timers.enable({ apis: ['setTimeout'] }));
  afterEach(() => mock.timers.reset());

  const silence = new Promise<never>(() => undefined);
  const settle = async () => {
    for (let turn = 0; turn < 20; turn++) await new Promise((resolve) => setImmediate(resolve));
  };

  /** The answer, which must come after ten seconds and not a millisecond before. */
  async function afterTenSeconds<Result>(answer: Promise<Result>): Promise<Result> {
    let isAnswered = false;
    void answer.then(() => {
      isAnswered = true;
    });
    await settle();
    mock.timers.tick(9_999);
    await settle();
    assert.equal(isAnswered, false);
    mock.timers.tick(1);
    await settle();
    assert.equal(isAnswered, true);
    return answer;
  }

  it('is told to come again after ten seconds of a silent database', async () => {
    const { send, answers } = open();
    answers.recording = silence;
    const { status, code, headers } = await afterTenSeconds(send());
    assert.deepEqual([status, code, headers['retry-after']], [503, 'database_unavailable', '1']);
  });

  it('is told so after ten seconds of an effect too, and what became of that when it comes again', async () => {
    const { send, seen, answers } = open({ mode: 'inline' });
    let end = () => {};
    answers.taking = new Promise((resolve) => {
      end = resolve;
    });
    const { status, code, headers } = await afterTenSeconds(send());
    assert.deepEqual([status, code, headers['retry-after']], [500, 'processing_failed', '1']);
    answers.outcomes = ['duplicate'];
    assert.equal((await afterTenSeconds(send())).code, 'processing_failed');
    const third = send();
    await settle();
    end();
    assert.equal((await third).json.status, 'duplicate');
    assert.deepEqual(seen.tried, ['row of evt_1'], 'one try, which all three have waited for');
  });

  it('waits ten seconds for record and effect together', async () => {
    const { send, answers } = open({ mode: 'inline' });
    let land = () => {};
    answers.recording = new Promise((resolve) => {
      land = resolve;
    });
    answers.taking = silence;
    const answer = send();
    await settle();
    mock.timers.tick(9_000);
    land();
    await settle();
    mock.timers.tick(1_000);
    assert.equal((await answer).code, 'processing_failed');
  });
});

describe('a delivery to an inline endpoint', () => {
  const inline = (outcome: Recorded['outcome'], processed: string, status: EventStatus = 'pending') => {
    const world = open({ mode: 'inline' });
    Object.assign(world.answers, { outcomes: [outcome], processedOf: () => processed, status });
    return world;
  };

  for (const [outcome, processed, status, tries] of [
    ['recorded', 'success', 'processed', 1],
    ['recorded', 'skipped', 'skipped', 1],
    ['duplicate', 'success', 'duplicate', 1],
    ['body_differs', 'success', 'body_differs', 0],
  ] as const)
    it(`that is ${outcome} and became ${processed} is ${status} after ${tries} tries`, async () => {
      const { send, seen } = inline(outcome, processed);
      assert.deepEqual((await send()).json, { status, events: [{ event_id: 'evt_1', status }] });
      assert.deepEqual(seen.tried, tries === 1 ? ['row of evt_1'] : []);
    });

  for (const outcome of ['recorded', 'duplicate'] as const)
    it(`that is ${outcome} and failed is to come again`, async () => {
      const { status, code, headers } = await inline(outcome, 'failed').send();
      assert.deepEqual([status, code, headers['retry-after']], [500, 'processing_failed', '1']);
    });

  for (const [outcome, before, tries] of [
    ['recorded', 'pending', 1],
    ['duplicate', 'failed', 1],
    ['duplicate', 'dead_letter', 0],
    ['quarantined', 'dead_letter', 0],
  ] as const)
    it(`that is ${outcome}, was ${before} and is a dead letter now is never answered 2xx`, async () => {
      const { send, seen } = inline(outcome, 'dead_letter', before);
      const { status, code, hint } = await send();
      assert.deepEqual([status, code], [500, 'processing_failed']);
      assert.match(hint ?? '', /dead letter.* until an operator replays or skips it\.$/);
      assert.equal(seen.tried.length, tries);
    });

  it('that an operator has skipped is answered 200 from then on', async () => {
    const { send, seen } = inline('duplicate', 'dead_letter', 'skipped');
    assert.deepEqual([(await send()).status, seen.tried], [200, []]);
  });

  it('to a queued endpoint is answered 200, dead letter or not: it is recorded, and that is what it says', async () => {
    const world = open();
    Object.assign(world.answers, { outcomes: ['duplicate'], status: 'dead_letter' });
    assert.deepEqual((await world.send()).json.status, 'duplicate');
  });

  it('of which one event failed is to come again as a whole', async () => {
    const world = open({ mode: 'inline', provider: 'whatsapp' });
    world.answers.processedOf = (id) => (id.endsWith('B') ? 'failed' : 'success');
    const messages = [{ id: 'wamid.A' }, { id: 'wamid.B' }];
    const body = JSON.stringify({ entry: [{ changes: [{ value: { messages } }] }] });
    assert.equal((await world.send({ body })).code, 'processing_failed');
    assert.deepEqual(world.seen.tried, ['row of message:wamid.A', 'row of message:wamid.B']);
  });

  it('that took effect before is a duplicate, and is not tried again', async () => {
    const { send, seen } = inline('duplicate', 'failed', 'success');
    assert.equal((await send()).json.status, 'duplicate');
    assert.deepEqual(seen.tried, []);
  });

  it('is not tried where the endpoint is queued', async () => {
    const { send, seen } = open();
    await send();
    assert.deepEqual(seen.tried, []);
  });
});

describe('the handshake', () => {
  const QUERY = 'hub.mode=subscribe&hub.verify_token=token-for-the-handshake&hub.challenge=42';
  const shake = async (change: Partial<Endpoint>, query: string | undefined = QUERY) => {
    const world = open({ provider: 'whatsapp', verify_token_name: 'TOKEN', ...change });
    return { ...(await world.ask({ method: 'GET', ...(query !== undefined && { query }) })), world };
  };

  it('is answered with the challenge as plain text', async () => {
    const { status, text, headers, world } = await shake({});
    assert.deepEqual([status, text, headers['content-type']], [200, '42', 'text/plain; charset=utf-8']);
    assert.deepEqual(world.warnings(), []);
  });

  it('is refused without the token, and without a query', async () => {
    assert.equal((await shake({}, QUERY.replace('token=token', 'token=other'))).status, 403);
    const world = open({ provider: 'whatsapp', verify_token_name: 'TOKEN' });
    assert.equal((await world.ask({ method: 'GET' })).status, 403);
  });

  const unusable = (secret: string, fault: string) =>
    [secret, 'a secret cannot be used', { endpoint: 'shop', secret, fault }] as const;
  for (const [verify_token_name, message, fields] of [
    [null, 'the endpoint names no verify token', {}],
    unusable('NONE', 'is not set'),
    unusable('EMPTY', 'is not set'),
    unusable('SHORT', 'is too short to be a secret'),
    unusable('FORBIDDEN', SECRET_FAULTS.not_allowed),
  ] as const)
    it(`is refused, and the log says why, where the token is ${verify_token_name}`, async () => {
      const { status, text, world } = await shake({ verify_token_name });
      assert.deepEqual([status, JSON.parse(text).error.code], [403, 'handshake_refused']);
      assert.deepEqual(world.warnings(), [
        { level: 'error', message, fields: { webhook_id: 'the webhook', ...fields } },
      ]);
    });

  it('is for WhatsApp alone: elsewhere the door takes POST', async () => {
    const { status, headers } = await shake({ provider: 'stripe' });
    assert.deepEqual([status, headers.allow], [405, 'POST']);
  });

  it('finds nothing where the endpoint is switched off', async () => {
    assert.equal((await shake({ is_active: false })).status, 404);
  });
});

describe('a request of Twilio that asks for TwiML', () => {
  const VOICE = 'CallSid=CA1&CallStatus=ringing';
  const form = { 'content-type': 'application/x-www-form-urlencoded' };
  const openTwilio = (mode: 'inline' | 'queued') => open({ provider: 'twilio', mode });

  for (const mode of ['queued', 'inline'] as const)
    it(`is answered with an empty response where no handler has another, ${mode}`, async () => {
      const { status, headers, text } = await openTwilio(mode).send({ body: VOICE, headers: form });
      assert.deepEqual(
        [status, headers['content-type'], text],
        [200, 'text/xml; charset=utf-8', '<?xml version="1.0" encoding="UTF-8"?><Response/>'],
      );
    });

  it('is answered with what its handler said, also when it comes again', async () => {
    const world = openTwilio('inline');
    world.answers.reply = '<Response><Say>Hello</Say></Response>';
    for (const outcome of ['recorded', 'duplicate'] as const) {
      world.answers.outcomes = [outcome];
      assert.equal((await world.send({ body: VOICE, headers: form })).text, world.answers.reply);
    }
  });

  it('is answered 500 in JSON where its handler failed: Twilio then asks its fallback', async () => {
    const world = openTwilio('inline');
    world.answers.processedOf = () => 'failed';
    assert.equal((await world.send({ body: VOICE, headers: form })).code, 'processing_failed');
  });

  it('is not a status callback: that is answered in JSON', async () => {
    const sent = await openTwilio('queued').send({ body: 'CallSid=CA1&CallStatus=completed', headers: form });
    assert.equal(sent.json.status, 'recorded');
  });
});
