// A process of its own that claims at a fixed pace, an order at a time.

import { OpenLoop, type OpenLoopOrder } from './open_loop.ts';

const loop = new OpenLoop(`${process.pid}_${Date.now()}`);

process.on('message', async (order: OpenLoopOrder | 'end') => {
  if (order === 'end') {
    loop.close();
    process.disconnect?.();
    return;
  }
  process.send?.(await loop.run(order));
});
