import assert from 'node:assert/strict';
import { it } from 'node:test';
import { moneyOf } from '#core/money.ts';

it('writes amounts with the digits that Stripe gives a currency', () => {
  const written = [
    [123_450, 'eur', 'EUR 1,234.50'],
    [5, 'usd', 'USD 0.05'],
    [500, 'jpy', 'JPY 500'],
    [1_234, 'kwd', 'KWD 1.234'],
    // Without digits in ISO 4217, with two at Stripe.
    [1_000, 'isk', 'ISK 10.00'],
  ] as const;
  for (const [amount, currency, text] of written) assert.equal(moneyOf(amount, currency), text);
});
