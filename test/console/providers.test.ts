import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PROVIDER_NAMES } from '#core/webhook/providers.ts';
import { PROVIDERS } from '../../console/lib/shapes.ts';

test('the console offers every provider that the server can verify, and no other', () => {
  assert.deepEqual([...PROVIDERS].toSorted(), PROVIDER_NAMES.toSorted());
});
