import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { actor, readConnection } from '../../src/commands/operator.ts';

const SERVER = { SLUICE_URL: 'http://h', SLUICE_ADMIN_KEY: 'k' };

function actorWith(env: Record<string, string>): string {
  const before = process.env;
  process.env = env;
  try {
    return actor();
  } finally {
    process.env = before;
  }
}

describe('the name of an operator', () => {
  it('keeps its letters where the command asks a database itself, on one line and within 200 characters', () => {
    assert.equal(actorWith({ SLUICE_OPERATOR: ' Zoë 李 ' }), 'Zoë 李');
    assert.equal(actorWith({ SLUICE_OPERATOR: 'a\nb\u001b\u202ec' }), 'a?b??c');
    assert.equal([...actorWith({ SLUICE_OPERATOR: '𝒵'.repeat(300) })].length, 200);
    assert.equal(actorWith({ USER: 'ann' }), 'ann');
    assert.equal(actorWith({}), 'operator');
  });

  it('is plain ASCII in the header, which the server takes in no other way', () => {
    assert.equal(readConnection({ ...SERVER, SLUICE_OPERATOR: 'Zoë' }).operator, 'Zo?');
    assert.equal(readConnection({ ...SERVER }).operator, undefined);
  });
});
