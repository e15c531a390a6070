import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { runCommand } from '../../src/commands/grammar.ts';
import { command as webhooks } from '../../src/commands/webhooks.ts';
import { DOCUMENTED, readPage, readSample, sectionOf } from './docs.ts';

/** What `sluice webhooks verify … --json` answers to the page's own command, with this body. */
async function verify(command: string[], body: string) {
  const dir = mkdtempSync(join(tmpdir(), 'sluice-docs-'));
  const { log } = console;
  let said = '';
  console.log = (line: string) => {
    said += line;
  };
  try {
    const file = join(dir, 'body');
    writeFileSync(file, body);
    const args = command.slice(1).map((word) => (word.startsWith('body.') ? file : word));
    const code = await runCommand('webhooks', webhooks, [...args, '--json']);
    return { code, report: JSON.parse(said) };
  } finally {
    console.log = log;
    rmSync(dir, { recursive: true });
  }
}

const EVENT_IDS: Record<string, string[]> = {
  stripe: ['evt_docs_1'],
  twilio: ['call:CAdocs1:completed'],
  whatsapp: ['status:wamid.docs.A:delivered', 'message:wamid.docs.B'],
  daily: ['rec-docs-1'],
};

describe('the sample of the page about', () => {
  for (const provider of DOCUMENTED) {
    it(`${provider} is signed as the page says, and refused with one byte changed`, async () => {
      const { body, command } = readSample(provider);
      const { code, report } = await verify(command, body);
      assert.deepEqual([code, report.valid, report.reason], [0, true, null]);
      assert.deepEqual(
        report.events.map((event: { eventId: string }) => event.eventId),
        EVENT_IDS[provider],
      );
      const changed = await verify(command, body.replace('docs', 'd0cs'));
      assert.deepEqual([changed.code, changed.report.reason], [1, 'bad_signature']);
    });
  }
});

describe('the contract on the page about', () => {
  for (const provider of DOCUMENTED) {
    it(`${provider} says what is signed, which id an event has, what happens once and what comes again`, () => {
      const page = readPage(`integrations/${provider}.md`);
      const { body, command } = readSample(provider);
      const words: Record<string, RegExp[]> = {
        'What is signed': [/\bHMAC-SHA(1|256)\b/],
        'Event id': [/\bid\b/],
        Idempotency: [/\*\*Towards us\.\*\* \S/, /\*\*Towards [A-Z]\w+\.\*\* \S/, /event\.idempotencyKey/],
        Retries: [/\b(deliver|tries|retr)/, /\bour own workers\b/i],
        Sample: [/^```(json|text)$/m],
      };
      for (const [heading, needed] of Object.entries(words))
        for (const word of needed) assert.match(sectionOf(page, heading), word, `${provider}.md, ${heading}`);
      // The headers that the sample is sent with.
      for (const [, name = ''] of command.join('\n').matchAll(/^(X-[\w-]+|Stripe-Signature): /gm))
        assert.ok(sectionOf(page, 'What is signed').includes(`\`${name}`), `${provider}.md names ${name}`);
      assert.ok(sectionOf(page, 'Sample').includes(body));
    });
  }
});

describe('the page about metrics', () => {
  it('names each metric with its labels', async () => {
    const page = readPage('metrics.md');
    const named: Record<string, string[]> = {
      webhook_processing_total: ['webhook_id', 'provider', 'result'],
      webhook_dead_letter_total: ['webhook_id', 'provider', 'reason'],
      webhook_replay_total: ['webhook_id', 'operator'],
      webhook_backlog: ['webhook_id', 'provider', 'status'],
      webhook_oldest_due_seconds: ['webhook_id', 'provider'],
      webhook_processing_seconds: ['provider', 'result'],
      webhook_payments_without_user: [],
      webhook_database_up: [],
      call_events_total: ['site', 'result', 'reason'],
      replay_cache_state: ['state'],
    };
    for (const [name, labels] of Object.entries(named)) {
      const line = page.split('\n').find((text) => text.startsWith(`| \`${name}\` |`)) ?? '';
      assert.deepEqual(
        [...(line.split('|')[3] ?? '').matchAll(/`(\w+)`/g)].map(([, label]) => label),
        labels,
        name,
      );
    }
  });
});
