import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { actor, asOperator, readConnection } from '../../src/commands/operator.ts';

const SERVER = { SLUICE_URL: 'http://h', SLUICE_ADMIN_KEY: 'k' };

describe('the name in the audit log', () => {
  it('is that of the operator whose key was looked up', async () => {
    assert.equal(await asOperator('Zoë 李', async () => actor({ USER: 'ann' })), 'Zoë 李');
  });

  it('is the owner without a key, with what this machine calls them, on one line', () => {
    assert.equal(actor({ USER: 'ann', SLUICE_OPERATOR: 'grace' }), 'owner (ann)');
    assert.equal(actor({ USER: 'a\nb\u001b\u202ec' }), 'owner (a?b??c)');
    assert.equal([...actor({ USER: '𝒵'.repeat(300) })].length, 108);
    assert.equal(actor({}), 'owner');
  });
});

describe('the key for the server', () => {
  it("is the operator's own before that of the server", () => {
    assert.equal(readConnection({ ...SERVER, SLUICE_OPERATOR_KEY: 'own' }).key, 'own');
    assert.equal(readConnection(SERVER).key, 'k');
  });
});
