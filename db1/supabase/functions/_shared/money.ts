// Amounts in minor units, as people write them. How many digits a currency has is Stripe's rule and not that of ISO 4217:
// docs.stripe.com/currencies (zero-decimal, three-decimal and special cases).

const NO_DIGITS = new Set('bif clp djf gnf jpy kmf krw mga pyg rwf vnd vuv xaf xof xpf'.split(' '));
const THREE_DIGITS = new Set('bhd jod kwd omr tnd'.split(' '));

export function minorDigits(currency: string): number {
  if (NO_DIGITS.has(currency)) return 0;
  return THREE_DIGITS.has(currency) ? 3 : 2;
}

/** 123450 eur is EUR 1,234.50. */
export function moneyOf(amount: number, currency: string): string {
  const digits = minorDigits(currency);
  const format = new Intl.NumberFormat('en', {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
  return `${currency.toUpperCase()} ${format.format(amount / 10 ** digits)}`;
}
