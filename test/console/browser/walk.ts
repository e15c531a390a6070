// A walk to repeat: `node --import tsx test/console/browser/walk.ts [certificate|handler|secret] [minutes]` plants one of three outages, chosen
// by chance where it is not named, and prints where the console is. A person who does not know which one it is looks for the cause with a
// browser alone. After the minutes, or at Ctrl-C, it says which one it was and takes everything away.

import { setTimeout as pause } from 'node:timers/promises';
import { ADMIN_KEY } from '../../server/support.ts';
import { ensureChromium } from '../chromium.ts';
import { plantCertificate, plantHandlerBug, plantLostSecret } from './plant.ts';
import { seed } from './seed.ts';
import { type House, openHouse } from './support.ts';

const OUTAGES: Readonly<Record<string, (house: House) => Promise<unknown>>> = {
  certificate: plantCertificate,
  handler: plantHandlerBug,
  secret: plantLostSecret,
};
const NAMES = Object.keys(OUTAGES);
const DEFAULT_MINUTES = 20;
const MINUTE_MS = 60_000;

const [, , name = NAMES[Math.floor(Math.random() * NAMES.length)] ?? '', minutes = DEFAULT_MINUTES] =
  process.argv;
const plant = OUTAGES[name];
const chromium = await ensureChromium();
if (plant === undefined || 'missing' in chromium) {
  console.error(plant === undefined ? `choose one of ${NAMES.join(', ')}` : 'no Chromium was found');
  process.exit(2);
}
const stopped = new AbortController();
process.once('SIGINT', () => stopped.abort());
const house = await openHouse(chromium.path);
try {
  // Other things are wrong, too, as they are on any day.
  await seed(house);
  await plant(house);
  console.log(
    `${house.url}\nkey: ${ADMIN_KEY}\nSomething else than the dead letters is wrong. What is it, and what is to be done?`,
  );
  await pause(Number(minutes) * MINUTE_MS, undefined, { signal: stopped.signal }).catch(() => undefined);
  console.log(`It was: ${name}`);
} finally {
  await house.close();
  process.exit(0);
}
