import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cleaned, type Found, groupsOf, wordsOf } from '#core/search/search.ts';

const found = (kind: Found['kind'], id: string, more: Partial<Found> = {}): Found => ({
  kind,
  id,
  ref: null,
  pool_id: null,
  user_id: null,
  state: null,
  at: null,
  why: 'id',
  db: 1,
  ...more,
});

test('what is pasted is taken without quotes, the dots of a shortened id and the sign of a number', () => {
  assert.equal(cleaned('  019a8f3c-1234…'), '019a8f3c-1234');
  assert.equal(cleaned('"pi_1"'), 'pi_1');
  assert.equal(cleaned('#42'), '42');
  // A name may begin with it.
  assert.equal(cleaned('#tag'), '#tag');
  assert.equal(cleaned('"…"'), '');
});

test('what the audit log or the credit ledger calls a thing is asked for as it is, and by the id in it', () => {
  assert.deepEqual(wordsOf('dead letter 12'), ['dead letter 12', '12']);
  assert.deepEqual(wordsOf('settle:stripe/pi_1'), ['settle:stripe/pi_1', 'stripe/pi_1']);
  assert.deepEqual(wordsOf('back:stripe/pi_1:2'), ['back:stripe/pi_1:2', 'stripe/pi_1']);
  assert.deepEqual(wordsOf('void:a-b'), ['void:a-b', 'a-b']);
  assert.deepEqual(wordsOf('stripe:test'), ['stripe:test']);
  assert.deepEqual(wordsOf('webhook endpoint shop'), ['webhook endpoint shop', 'shop']);
  assert.deepEqual(wordsOf('call site branch-7'), ['call site branch-7', 'branch-7']);
  assert.deepEqual(wordsOf('issue 0ffb'), ['issue 0ffb', '0ffb']);
});

test('each thing is told once, by the ledger where both know it', () => {
  const groups = groupsOf(
    [found('payment', 'stripe/pi_1'), found('payment', 'stripe/pi_1', { db: 2, state: 'succeeded' })],
    'pi',
    8,
  );
  assert.deepEqual(
    groups.map(({ kind, items }) => [kind, items.map(({ state }) => state)]),
    [['payment', ['succeeded']]],
  );
});

test('rows of the audit log of two databases, or two cells, are two rows', () => {
  const rows = [
    found('audit', '1'),
    found('audit', '1', { db: 2 }),
    found('audit', '1', { cell: 'b' }),
    found('audit', '1', { cell: 'b' }),
  ];
  assert.equal(groupsOf(rows, '1', 8)[0]?.items.length, 3);
});

test('messages of two cells are two, though both have one number: each queue counts its own', () => {
  const rows = [
    found('message', '7', { cell: 'a', pool_id: 'in_a' }),
    found('message', '7', { cell: 'b', pool_id: 'in_b' }),
    found('message', '7', { cell: 'b', pool_id: 'in_b' }),
  ];
  assert.deepEqual(
    groupsOf(rows, '7', 8).map(({ items }) => items.map(({ pool_id }) => pool_id)),
    [['in_a', 'in_b']],
  );
});

test('what has exactly this id comes first, with its kind', () => {
  const rows = [found('claim', 'annie-claim'), found('user', 'annie'), found('user', 'ann')];
  const groups = groupsOf(rows, 'ann', 8);
  assert.deepEqual(
    groups.map(({ kind, items }) => [kind, items[0]?.id]),
    [
      ['user', 'ann'],
      ['claim', 'annie-claim'],
    ],
  );
});

test('more than are shown are told of, and no more are shown', () => {
  const rows = Array.from({ length: 4 }, (_, n) => found('user', `u${n}`));
  assert.deepEqual(
    groupsOf(rows, 'u', 3).map(({ items, has_more }) => [items.length, has_more]),
    [[3, true]],
  );
  assert.equal(groupsOf(rows, 'u', 4)[0]?.has_more, false);
});
