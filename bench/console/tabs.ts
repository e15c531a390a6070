// A process of its own: console tabs as a browser holds them (console/app.tsx, console/lib/live.ts). A tab asks for the page,
// its files and the session, opens the live stream, loads what its page shows once, and then only listens. Some go to another
// page while the burst is on.

import { connect, type Socket } from 'node:net';

export type TabsOrder = { port: number; tabs: number; cookie: string };
export type TabsReport = {
  /** Of the tab that heard the least, and the one that heard the most, while the burst was on. */
  samples_least: number;
  samples_most: number;
  /** Loads of a page's data while the burst was on. */
  loads: number;
  failures: number;
};
export type FromParent = TabsOrder | 'burst' | 'end';

/** What each page of the console asks for when it is opened. */
const PAGE_DATA = [
  ['/admin/samples?range=15m'],
  ['/admin/samples?range=1h'],
  ['/admin/pools'],
  ['/admin/claims?limit=50'],
  ['/admin/dlq?limit=100'],
  ['/admin/webhooks/endpoints'],
  ['/admin/webhooks/events?limit=100'],
  ['/admin/calls'],
  ['/admin/audit'],
  ['/admin/health'],
];
/** One in ten goes to another page every second and a half, for as long as the burst takes: a room full of busy operators. */
const MOVING_SHARE = 0.1;
const MOVES_TAKE_MS = 1_500;
/** As many as a browser opens at once, so that opening the tabs is not a burst of its own. */
const OPENED_AT_ONCE = 6;
const SAMPLE = Buffer.from('event: sample\n');

interface Tab {
  readonly socket: Socket;
  /** Has heard a first sample. */
  readonly isLive: Promise<void>;
  samples: number;
}

const tabs: Tab[] = [];
const report: TabsReport = { samples_least: 0, samples_most: 0, loads: 0, failures: 0 };
let order: TabsOrder | undefined;
let moving: NodeJS.Timeout | undefined;

async function load({ port, cookie }: TabsOrder, path: string): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { cookie } });
  const text = await response.text();
  if (!response.ok) report.failures++;
  return text;
}

async function loadData(of: TabsOrder, page: number): Promise<void> {
  for (const path of PAGE_DATA[page % PAGE_DATA.length] ?? []) {
    await load(of, path);
    report.loads++;
  }
}

async function openTab(of: TabsOrder, index: number): Promise<void> {
  const html = await load(of, '/');
  for (const [, file] of html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)) if (file) await load(of, file);
  await load(of, '/admin/session');
  const socket = connect(of.port, '127.0.0.1');
  const tab: Tab = {
    socket,
    samples: 0,
    isLive: new Promise((resolve, reject) => {
      socket.on('error', reject).on('data', (chunk: Buffer) => {
        // Counted, not parsed: a browser's work is done on another machine.
        for (let at = chunk.indexOf(SAMPLE); at >= 0; at = chunk.indexOf(SAMPLE, at + 1)) tab.samples++;
        if (tab.samples > 0) resolve();
      });
    }),
  };
  tabs.push(tab);
  socket.write(`GET /admin/live HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: ${of.cookie}\r\n\r\n`);
  await loadData(of, index);
}

async function openAll(of: TabsOrder): Promise<void> {
  let next = 0;
  const open = async (): Promise<void> => {
    while (next < of.tabs) await openTab(of, next++);
  };
  await Promise.all(Array.from({ length: OPENED_AT_ONCE }, open));
  await Promise.all(tabs.map(({ isLive }) => isLive));
}

function startBurst(of: TabsOrder): void {
  for (const tab of tabs) tab.samples = 0;
  report.loads = 0;
  let moves = 0;
  moving = setInterval(
    () => {
      loadData(of, moves++).catch(() => {
        report.failures++;
      });
    },
    MOVES_TAKE_MS / Math.ceil(of.tabs * MOVING_SHARE),
  );
}

process.on('message', async (message: FromParent) => {
  if (typeof message === 'object') {
    order = message;
    await openAll(order);
    process.send?.('open');
  } else if (message === 'burst' && order !== undefined) {
    startBurst(order);
    process.send?.('burst');
  } else {
    clearInterval(moving);
    const heard = tabs.map(({ samples }) => samples);
    process.send?.({ ...report, samples_least: Math.min(...heard), samples_most: Math.max(...heard) }, () => {
      for (const { socket } of tabs) socket.destroy();
      process.disconnect?.();
    });
  }
});
