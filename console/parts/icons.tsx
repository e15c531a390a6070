// Drawn here: the content security policy lets no images of others in, and a handful is enough.

const PATHS = {
  overview: 'M3 12h4l3-8 4 16 3-8h4',
  history: 'M4 4v5h5M4.6 9A8 8 0 1 1 4 12M12 8v4l3 2',
  pools:
    'M4 7c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3Zm0 0v10c0 1.7 3.6 3 8 3s8-1.3 8-3V7M4 12c0 1.7 3.6 3 8 3s8-1.3 8-3',
  claims: 'M4 8V6h16v2a4 4 0 0 0 0 8v2H4v-2a4 4 0 0 0 0-8ZM14 6v2m0 3v2m0 3v2',
  orders: 'M5 3h14v18l-3-2-2 2-2-2-2 2-2-2-3 2ZM9 8h6M9 12h6',
  refunds: 'M9 6 4 11l5 5M4 11h10a5 5 0 0 1 0 10h-3',
  letters: 'M3 6h18v12H3zM3 7l9 6 9-6',
  webhooks: 'M9 7a3 3 0 1 1 4.6 2.5L17 15M6.5 12.5a3 3 0 1 0 4.4 3.5H17m0-4a3 3 0 1 1-2.6 5.5M9.6 9.8 7 14.5',
  events: 'M5 5h14M5 10h14M5 15h9M5 20h5',
  calls: 'M5 4h4l2 5-2.5 1.5a11 11 0 0 0 5 5L15 13l5 2v4a2 2 0 0 1-2 2A16 16 0 0 1 3 6a2 2 0 0 1 2-2Z',
  sites: 'M12 21s-7-6-7-11a7 7 0 0 1 14 0c0 5-7 11-7 11ZM12 13a3 3 0 1 0 0-6 3 3 0 0 0 0 6Z',
  operators: 'M14.5 3a6.5 6.5 0 1 1-5.6 9.8L4 17.7V21h3.3v-2.6h2.6v-2.6l1.6-1.6M16 8.5v.01',
  audit: 'M6 3h9l4 4v14H6zM14 3v5h5M9 13h7M9 17h5',
  health: 'M12 20s-8-4.7-8-10.5A4.5 4.5 0 0 1 12 7a4.5 4.5 0 0 1 8 2.5C20 15.3 12 20 12 20Z',
  tickets: 'M3 9V6h18v3a3 3 0 0 0 0 6v3H3v-3a3 3 0 0 0 0-6ZM9 9h6M9 12h6M9 15h4',
  payments: 'M3 6h18v12H3zM3 10h18M7 15h4',
  users: 'M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8ZM4 21c0-4 3.6-7 8-7s8 3 8 7',
  search: 'M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14Zm5 12 4 4',
  menu: 'M4 7h16M4 12h16M4 17h16',
  close: 'M6 6l12 12M18 6 6 18',
  alarm: 'M12 4 2.5 20h19zM12 10v5m0 2.5v.5',
  check: 'M5 13l4 4L19 7',
  plus: 'M12 5v14M5 12h14',
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={PATHS[name]} />
    </svg>
  );
}

/** The gate that lets the water through a little at a time. */
export function Mark() {
  return (
    <svg class="mark" viewBox="0 0 32 32" aria-hidden="true">
      <rect class="mark-ground" width="32" height="32" rx="8" />
      <path class="mark-water" d="M4 13q3-3 6 0t6 0v6q-3 3-6 0t-6 0z" />
      <path class="mark-stream" d="M18 20h10M18 24h7" />
      <path class="mark-gate" d="M16 5v22" />
    </svg>
  );
}
