// How a ticket is told to people. Web globals only, and nothing else: pages use it too.

/**
 * The label of the slot, or a short number of its own. The end of the id: its beginning is the time at which the seats were put
 * on sale, the same for all of them.
 */
export function seatName(label: string | null | undefined, resourceId: string): string {
  return label ?? `${resourceId.slice(-8, -4)} ${resourceId.slice(-4)}`.toUpperCase();
}

/** A moment where it happens, whatever the clock of the reader says: "Saturday, 28 February 2026 at 20:00 CET". */
export function momentAt(at: string, timeZone: string | null | undefined): string {
  return new Intl.DateTimeFormat('en-GB', {
    weekday: 'long',
    day: 'numeric',
    month: 'long',
    year: 'numeric',
    hour: '2-digit',
    minute: '2-digit',
    // A row that was written past our own check may hold a zone that only Postgres knows.
    timeZone: timeZone != null && isTimeZone(timeZone) ? timeZone : 'UTC',
    timeZoneName: 'short',
  }).format(new Date(at));
}

export function isTimeZone(name: string): boolean {
  try {
    return new Intl.DateTimeFormat('en-GB', { timeZone: name }).resolvedOptions().timeZone !== '';
  } catch {
    return false;
  }
}
