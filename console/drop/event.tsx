// What is on sale: when, where, and what the organiser says about it.

import type { PoolDetails } from '../../db1/supabase/functions/_shared/pool.ts';
import { momentAt } from '../../db1/supabase/functions/_shared/tickets/words.ts';

export function Event({ details: { starts_at, time_zone, place } }: { details: PoolDetails }) {
  if (starts_at === null && place === null) return null;
  return (
    <p class="sub">
      {starts_at !== null && <span class="line">{momentAt(starts_at, time_zone)}</span>}
      {place !== null && <span class="line">{place}</span>}
    </p>
  );
}

/** Empty lines part paragraphs. */
export function About({ text }: { text: string }) {
  return (
    <section class="about" aria-label="About">
      {text.split(/\n\s*\n/).map((paragraph, at) => (
        <p key={at}>{paragraph}</p>
      ))}
    </section>
  );
}
