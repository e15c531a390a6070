import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { JsonError } from '#core/json.ts';
import { readForm } from '#core/webhook/form.ts';
import { providerNamed } from '#core/webhook/providers.ts';
import { nodeHmac } from '../../src/webhook/hmac.ts';

const form = (fields: number) => Buffer.from(Array.from({ length: fields }, (_, at) => `f${at}=x`).join('&'));
const isTooMany = (error: unknown) => error instanceof JsonError && error.reason === 'too_many_fields';

describe('a form', () => {
  it('has up to a thousand fields', () => assert.equal(readForm(form(1_000)).size, 1_000));

  it('is refused with one more, equal or not', () => {
    assert.throws(() => readForm(form(1_001)), isTooMany);
    assert.throws(() => readForm(Buffer.from('a&'.repeat(1_001))), isTooMany);
  });

  it('of Slack, which is signed as bytes, is read only after that', () => {
    const request = { method: 'POST', url: '', headers: {}, body: form(1_001) };
    return assert.rejects(
      async () => providerNamed('slack')?.read(request, { port: nodeHmac, nowSec: 0 }),
      isTooMany,
    );
  });
});
