// A member that works on nothing, and ends when it is told to.

import { join } from '../../src/processes/part.ts';

const member = await join();
await member?.tellListening({});
await member?.stopped;
process.disconnect?.();
