// One switch for all times of the console: the zone of this browser, or UTC.

import { zoneOf } from '../lib/format.ts';
import { useStore } from '../lib/store.ts';
import { setZone, zone } from '../lib/zone.ts';

export function ZoneSwitch() {
  const current = useStore(zone);
  const isUtc = current === 'UTC';
  return (
    <button
      type="button"
      class="button button-quiet zone-switch"
      aria-pressed={isUtc}
      title={isUtc ? 'Show times in the zone of this browser' : 'Show times in UTC'}
      onClick={() => setZone(isUtc ? 'local' : 'UTC')}
    >
      <span class="sr-only">Times in UTC, now in </span>
      {isUtc ? 'UTC' : `Local (${zoneOf(new Date())})`}
    </button>
  );
}
