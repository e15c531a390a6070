import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { storySteps } from '../../console/parts/story.ts';

const queued = (detail: Record<string, unknown>) =>
  storySteps([{ at: '2026-02-24T10:00:00.000Z', what: 'queued', detail }], {})[0]?.note;

describe('the timeline of a claim that is queued', () => {
  it('says why deliveries are more than attempts after an outage', () => {
    assert.match(String(queued({ deliveries: 14, attempts: 0, is_held: true })), /met an outage/);
    assert.match(String(queued({ deliveries: 3, attempts: 1, is_held: false })), /met an outage/);
  });

  it('says nothing of it where each delivery failed, or is still under way', () => {
    assert.equal(queued({ deliveries: 0, attempts: 0, is_held: false }), undefined);
    assert.equal(queued({ deliveries: 3, attempts: 2, is_held: true }), undefined);
    assert.equal(queued({ deliveries: 2, attempts: 2, is_held: true }), undefined);
  });
});
