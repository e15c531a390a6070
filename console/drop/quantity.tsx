// How many seats, and what they cost together.

import { money, seatsText } from './text.ts';
import type { PoolNow } from './watch.ts';

/** The most that one request can get now: by the pool's rules, and of what is left. */
export function mostSeats({ max_quantity, max_per_user, available }: PoolNow): number {
  return Math.max(1, Math.min(max_quantity, max_per_user ?? max_quantity, available));
}

export interface QuantityProps {
  readonly pool: PoolNow;
  readonly quantity: number;
  readonly onChange: (quantity: number) => void;
}

export function Quantity({ pool, quantity, onChange }: QuantityProps) {
  const most = mostSeats(pool);
  if (pool.max_quantity === 1) return <Price pool={pool} quantity={1} />;
  return (
    <div class="quantity">
      <fieldset>
        <legend class="label">How many seats</legend>
        <button
          type="button"
          aria-label="One seat fewer"
          aria-disabled={quantity <= 1}
          onClick={() => quantity > 1 && onChange(quantity - 1)}
        >
          −
        </button>
        <output aria-live="polite">{seatsText(quantity)}</output>
        <button
          type="button"
          aria-label="One seat more"
          aria-disabled={quantity >= most}
          onClick={() => quantity < most && onChange(quantity + 1)}
        >
          +
        </button>
      </fieldset>
      <Price pool={pool} quantity={quantity} />
    </div>
  );
}

function Price({
  pool: { confirm_by, price, currency },
  quantity,
}: Pick<QuantityProps, 'pool' | 'quantity'>) {
  if (confirm_by !== 'payment' || price === null || currency === null) return null;
  return (
    <p class="price">
      <b>{money(price * quantity, currency)}</b>
      {quantity > 1 && <span class="label">{money(price, currency)} each</span>}
    </p>
  );
}
