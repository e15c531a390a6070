import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { LiveSample } from '#core/console/sample.ts';
import { progressLine, startProgress } from '../../src/commands/progress.ts';
import { statusPage } from '../../src/commands/status_page.ts';
import { createPaint } from '../../src/commands/table.ts';

describe('colour', () => {
  it('is for terminals only, and not where NO_COLOR or a dumb terminal says so', () => {
    const terminal = { isTTY: true };
    assert.equal(createPaint(terminal, {})('red', 'x'), '\u001b[31mx\u001b[0m');
    assert.equal(createPaint({ isTTY: false }, {})('red', 'x'), 'x');
    assert.equal(createPaint(terminal, { NO_COLOR: '1' })('red', 'x'), 'x');
    assert.equal(createPaint(terminal, { NO_COLOR: '' })('red', 'x'), '\u001b[31mx\u001b[0m');
    assert.equal(createPaint(terminal, { TERM: 'dumb' })('red', 'x'), 'x');
  });
});

describe('progress', () => {
  it('tells how much, how fast and how long yet', () => {
    assert.match(progressLine(50, 200, 'slots', 2), /^\[#{8}\.{22}\] 50 of 200 slots, 25\/s, 6 s left$/);
    assert.match(progressLine(200, 200, 'slots', 8), /^\[#{30}\] 200 of 200 slots, 25\/s$/);
  });

  it('says nothing into a pipe', () => {
    const said: string[] = [];
    const write = (text: string | Uint8Array) => said.push(String(text)) > 0;
    const run = (isTTY: boolean) => {
      const progress = startProgress(10, 'slots', { isTTY, write } as NodeJS.WriteStream, () => 0);
      progress.advance(10);
      progress.end();
    };
    run(false);
    assert.deepEqual(said, []);
    run(true);
    assert.match(said.join(''), /10 of 10 slots/);
  });
});

describe('the page of status', () => {
  const down: LiveSample = {
    at: '2026-02-24T10:00:00.123Z',
    claims_total: null,
    claims_per_sec: null,
    queue_depth: null,
    oldest_msg_sec: null,
    drain_per_sec: null,
    eta_sec: null,
    ledger_total: 12_345,
    commits_per_sec: 10.5,
    dlq_depth: null,
    hold_oldest_sec: null,
    ticket_p50_sec: null,
    ticket_p99_sec: null,
    webhooks: { backlog: null, oldest_sec: null, dead_letters: null, per_sec: null },
    inbox: { waiting: null, oldest_sec: null, dead_letters: null },
    orders: { past_bound: null, outbox_oldest_sec: null, refunds_waiting: null, is_braked: null },
    calls_per_sec: null,
    pools: null,
    workers: { bridge: null, webhook: 0 },
    troubles: null,
    issues: null,
    db1: { ok: false, ms: 900 },
    db2: { ok: true, ms: 1.4 },
  };
  const plain = createPaint({ isTTY: false }, {});

  it('shows a dash for what is not known, never a zero', () => {
    const page = statusPage(down, 'http://h', plain);
    assert.match(page, /^DB1 intake DOWN {3}DB2 ledger ok 1 ms$/m);
    assert.match(page, /^claims +- +-$/m);
    assert.match(page, /^tickets +12,345 +10.5\/s$/m);
    assert.match(page, /^bridge workers +-$/m);
  });

  it('tells how many workers run, and what to do where none does', () => {
    const page = statusPage({ ...down, workers: { bridge: 4, webhook: 0 } }, 'http://h', plain);
    assert.match(page, /^bridge workers +4 +connections$/m);
    assert.match(page, /^webhook workers +0 +none; start some with sluice work$/m);
  });

  it('names what workers leave alone and which secret is missing, with the cause', () => {
    const since = '2026-02-24T09:59:00.000Z';
    const troubles: LiveSample['troubles'] = [
      { kind: 'breaker', subject: 'hooks.example', why: 'certificate has expired', since },
      { kind: 'secret', subject: 'endpoint shop', why: null, since },
    ];
    const page = statusPage({ ...down, troubles }, 'http://h', plain);
    assert.match(page, /^left alone: hooks\.example: certificate has expired$/m);
    assert.match(page, /^secret missing: endpoint shop$/m);
    assert.doesNotMatch(statusPage(down, 'http://h', plain), /left alone|missing/);
  });

  it('tells the age of the queue, when it will be empty, and what to do about dead letters', () => {
    const page = statusPage(
      { ...down, queue_depth: 50, oldest_msg_sec: 3.2, eta_sec: 7, dlq_depth: 2 },
      'http://h',
      plain,
    );
    assert.match(page, /^queue +50 +- +oldest 3\.2 s, empty in 7 s$/m);
    assert.match(page, /^dead letters +2 +sluice dlq list$/m);
  });
});
