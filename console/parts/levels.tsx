// How full a pool is: what is left stands in it as water, what is held is hatched, what is sold is gone.

import { count } from '../lib/format.ts';
import type { PoolLevel } from '../lib/shapes.ts';

export function LevelBar({ level, hasLegend = false }: { level: PoolLevel; hasLegend?: boolean }) {
  const { capacity, available, reserved, consumed } = level;
  const isKnown = available !== null && reserved !== null && consumed !== null;
  const share = (part: number | null) => `${capacity > 0 ? (100 * (part ?? 0)) / capacity : 0}%`;
  const text = isKnown
    ? `${count(available)} of ${count(capacity)} left, ${count(reserved)} held, ${count(consumed)} sold`
    : 'being counted after a restart of the database';
  return (
    <div class="level">
      <div class="level-bar" role="img" aria-label={`${level.pool_id}: ${text}`}>
        {isKnown && (
          <>
            <span class="level-available" style={{ width: share(available) }} />
            <span class="level-reserved" style={{ width: share(reserved) }} />
          </>
        )}
      </div>
      {hasLegend && (
        <ul class="legend">
          <li class="key-available">{count(available)} left</li>
          <li class="key-reserved">{count(reserved)} held</li>
          <li class="key-consumed">{count(consumed)} sold</li>
        </ul>
      )}
    </div>
  );
}
