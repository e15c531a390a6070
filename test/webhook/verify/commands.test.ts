import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, mock, test } from 'node:test';
import { providerNamed } from '#core/webhook/providers.ts';
import { runCommand, UsageError } from '../../../src/commands/grammar.ts';
import { send as sendAction } from '../../../src/commands/webhooks_send.ts';
import { verify as verifyAction } from '../../../src/commands/webhooks_verify.ts';
import { StackError } from '../../../src/failure.ts';
import { nodeHmac } from '../../../src/webhook/hmac.ts';
import { SAMPLE_TYPES } from '../../../src/webhook/samples.ts';

const SECRET = 'whsec_test_secret';
const BODY = '{\n  "id": "evt_test_webhook",\n  "object": "event"\n}';
const HEADER =
  'Stripe-Signature: t=1700000000,v1=4f1cd7feda9826e746b7d482c4badebb657398df1099e1046364f6196a230150';

const runSend = (args: string[]) => runCommand('send', sendAction, args);
const runVerify = (args: string[]) => runCommand('verify', verifyAction, args);

let dir: string;
before(() => {
  dir = mkdtempSync(join(tmpdir(), 'sluice-verify-'));
});
after(() => rmSync(dir, { recursive: true }));

/** What a command prints, and its exit code. */
async function outputOf(work: () => Promise<number>): Promise<{ code: number; output: string }> {
  const lines: string[] = [];
  const keep = (line: string): number => lines.push(line);
  const spies = [mock.method(console, 'log', keep), mock.method(console, 'error', keep)];
  try {
    return { code: await work(), output: lines.join('\n') };
  } finally {
    for (const spy of spies) spy.mock.restore();
  }
}

describe('sluice webhooks verify', () => {
  const verify = (body: string, ...args: string[]) => {
    const file = join(dir, 'body');
    writeFileSync(file, body);
    return outputOf(() => runVerify(['stripe', '--body-file', file, '--now', '1700000000', ...args]));
  };

  test('says valid, with which secret, and what event it is', async () => {
    const { code, output } = await verify(BODY, '--secret', 'old', '--secret', SECRET, '--header', HEADER);
    assert.equal(code, 0);
    assert.match(output, /^valid: signed with secret 2 of 2\n/);
    assert.match(output, /event evt_test_webhook, unknown$/);
  });

  test('says why not, and shows neither the secret nor the right signature', async () => {
    const signature = /v1=(.*)/.exec(HEADER)?.[1] ?? '';
    const forged = HEADER.replace(signature, '0'.repeat(64));
    const { code, output } = await verify(BODY, '--secret', SECRET, '--header', forged, '--json');
    assert.equal(code, 1);
    const { valid, reason } = JSON.parse(output);
    assert.deepEqual([valid, reason], [false, 'bad_signature']);
    assert.ok(!output.includes(SECRET) && !output.includes(signature));
  });

  for (const [what, body, args, hint] of [
    ['a newline that an editor added', `${BODY}\n`, ['--secret', SECRET], /without the newline/],
    [
      'line ends that a mailer changed',
      BODY.replaceAll('\n', '\r\n'),
      ['--secret', SECRET],
      /LF instead of CRLF/,
    ],
    ['a secret with a space', BODY, ['--secret', `${SECRET} `], /without the spaces around it/],
  ] as const) {
    test(`finds ${what}`, async () => {
      const { code, output } = await verify(body, ...args, '--header', HEADER);
      assert.equal(code, 1);
      assert.match(output, hint);
    });
  }

  test('an old request is stale, and nothing else is guessed', async () => {
    const { code, output } = await verify(
      BODY,
      '--secret',
      SECRET,
      '--header',
      HEADER,
      '--now',
      '1700000301',
    );
    assert.equal(code, 1);
    assert.match(output, /^not valid: stale: the timestamp is 301 s old/);
    assert.doesNotMatch(output, /hint:/);
  });

  test('a signed body that is not JSON is valid, and the output says what it is', async () => {
    const file = join(dir, 'hello');
    writeFileSync(file, 'Hello, World!');
    const header =
      'X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
    const args = [
      'github',
      '--secret',
      "It's a Secret to Everybody",
      '--body-file',
      file,
      '--header',
      header,
    ];
    const { code, output } = await outputOf(() => runVerify(args));
    assert.equal(code, 0);
    assert.match(output, /the body is not JSON: syntax/);
  });

  test('a call it does not understand is a usage error', async () => {
    for (const args of [
      [],
      ['acme'],
      ['stripe'],
      ['stripe', '--secret', 's'],
      ['stripe', '--secret', 's', '--body-file', join(dir, 'nowhere')],
      ['stripe', '--secret', 's', '--body-file', join(dir, 'body'), '--header', 'none'],
      ['stripe', '--secret', 's', '--body-file', join(dir, 'body'), '--now', 'soon'],
      ['hmac', '--secret', 's', '--body-file', join(dir, 'body'), '--scheme', '{"header":"x"}'],
      ['twilio', '--secret', 's', '--body-file', join(dir, 'body')],
    ])
      await assert.rejects(runVerify(args), UsageError, args.join(' '));
  });
});

describe('sluice webhooks send', () => {
  const secrets: Record<string, string> = { daily: 'c2VjcmV0', standard: 'whsec_c2VjcmV0' };
  const events: string[] = [];
  let server: Server;
  let url: string;

  /** Verifies and reads as the door does, and answers with the events' ids. */
  before(async () => {
    server = createServer(async (request, response) => {
      const chunks: Buffer[] = [];
      for await (const chunk of request) chunks.push(chunk);
      const name = request.url?.slice('/webhooks/'.length) ?? '';
      const asked = {
        method: 'POST',
        url: `${url}${request.url}`,
        headers: request.headers,
        body: Buffer.concat(chunks),
      };
      const context = { port: nodeHmac, nowSec: Math.floor(Date.now() / 1_000) };
      const provider = providerNamed(name);
      const verification = await provider?.verify(asked, [secrets[name] ?? 'secret'], context);
      if (verification?.ok) {
        for (const { eventId, hash } of (await provider?.read(asked, context)) ?? [])
          events.push(`${eventId} ${hash}`);
      }
      response.writeHead(verification?.ok ? 200 : 401).end('{"status":"recorded"}');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => {
    server.closeAllConnections();
    server.close();
  });

  const send = (provider: string, ...args: string[]) => {
    const to = ['--to', `${url}/webhooks/${provider}`, '--secret', secrets[provider] ?? 'secret'];
    return outputOf(() => runSend([provider, ...args.slice(0, 1), ...to, ...args.slice(1)]));
  };

  test('every sample of every provider is accepted', async () => {
    for (const [provider, types] of Object.entries(SAMPLE_TYPES)) {
      for (const type of types) assert.equal((await send(provider, type)).code, 0, `${provider} ${type}`);
    }
  });

  test('with a count it sends so many events, and with an id the same one again', async () => {
    events.length = 0;
    assert.equal((await send('stripe', 'charge.succeeded', '--count', '3')).code, 0);
    assert.equal(new Set(events).size, 3);
    events.length = 0;
    const { output } = await send(
      'stripe',
      'charge.succeeded',
      '--count',
      '3',
      '--event-id',
      'evt_1',
      '--json',
    );
    assert.equal(events.length, 3);
    assert.equal(new Set(events).size, 1);
    assert.deepEqual(JSON.parse(output.split('\n')[0] ?? ''), {
      event_id: 'evt_1',
      status: 200,
      answer: { status: 'recorded' },
    });
  });

  test('a refused event is exit code 1', async () => {
    const { code, output } = await send('stripe', 'charge.succeeded', '--secret', 'other');
    assert.equal(code, 1);
    assert.match(output, / 401 /);
  });

  test('a call it does not understand is a usage error, a server that is not there a failure', async () => {
    for (const args of [
      [],
      ['stripe'],
      ['acme', 'x'],
      ['stripe', 'x', '--amount', '1.5'],
      ['stripe', 'x', '--count', '0'],
    ])
      await assert.rejects(runSend(args), UsageError, args.join(' '));
    const unreachable = ['stripe', 'x', '--secret', 's', '--to', 'http://127.0.0.1:1/'];
    await assert.rejects(runSend(unreachable), StackError);
  });
});
