import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ClaimCall } from '../../chaos/history.ts';
import { Journal, readJournals } from '../../chaos/journal.ts';

const claim = (requestId: string, more: Partial<ClaimCall> = {}): ClaimCall => ({
  requestId,
  poolId: 'rpc',
  userId: 'ann',
  startedAt: 1,
  endedAt: 2,
  attempts: 1,
  answer: 'claimed',
  told: [{ claimId: 'c', slotId: 's' }],
  ...more,
});

describe('the journals of clients', () => {
  let dir: string;
  let journal: Journal;
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'sluice-journal-'));
    journal = new Journal(dir);
  });
  afterEach(() => {
    journal.close();
    rmSync(dir, { recursive: true });
  });

  it('are on disk when write returns, one file a client', () => {
    journal.write('one', 'claim', claim('r-1'));
    journal.write('two', 'poison', { id: 'p' });
    assert.match(readFileSync(join(dir, 'one.ndjson'), 'utf8'), /"r-1".*\n$/);
    assert.match(readFileSync(join(dir, 'two.ndjson'), 'utf8'), /"poison"/);
  });

  it('give back what was written, of all clients', () => {
    journal.write('one', 'claim', claim('r-1'));
    journal.write('two', 'claim', claim('r-2'));
    journal.write('two', 'target', { kind: 'commit', key: 'k', at: 3, status: 'none', poolId: 'hook' });
    const { claim: claims, target, release } = readJournals(dir);
    assert.deepEqual(claims, [claim('r-1'), claim('r-2')]);
    assert.deepEqual(target, [{ kind: 'commit', key: 'k', at: 3, status: 'none', poolId: 'hook' }]);
    assert.deepEqual(release, []);
  });

  it('keep the last word about a request, and every word about actions', () => {
    journal.write('one', 'claim', claim('r-1'));
    journal.write('one', 'claim', claim('r-1', { attempts: 2, answer: 'refused' }));
    journal.write('one', 'release', { claimId: 'c', at: 1, answer: 'unknown' });
    journal.write('one', 'release', { claimId: 'c', at: 2, answer: 'released' });
    const { claim: claims, release } = readJournals(dir);
    assert.deepEqual(claims, [claim('r-1', { attempts: 2, answer: 'refused' })]);
    assert.equal(release.length, 2);
  });

  it('keep the last word about a void, which is noted before it is asked for', () => {
    const call = { claimIds: ['c'], isRefund: true, reason: 'chaos c', at: 1, answer: 'unknown' } as const;
    journal.write('one', 'void', { ...call, claimIds: ['c'] });
    journal.write('one', 'void', { ...call, claimIds: ['c'], answer: 'done' });
    assert.deepEqual(
      readJournals(dir).void.map(({ answer }) => answer),
      ['done'],
    );
  });

  it('leave out a line that was never finished, and refuse one of an unknown kind', () => {
    journal.write('one', 'poison', { id: 'whole' });
    appendFileSync(join(dir, 'one.ndjson'), '{"kind":"poison","entry":{"id":"ha');
    assert.deepEqual(readJournals(dir).poison, [{ id: 'whole' }]);
    appendFileSync(join(dir, 'two.ndjson'), '{"kind":"gossip","entry":{}}\n');
    assert.throws(() => readJournals(dir), /two.ndjson has a line of kind gossip/);
  });
});
