import { main } from './commands/main.ts';
import { PART_VARIABLE } from './processes/part.ts';

/** The reader has left: `| head` had enough, the window was closed. What we do matters more than who reads about it. */
const UNREAD: ReadonlySet<string | undefined> = new Set(['EPIPE', 'EIO']);

for (const stream of [process.stdout, process.stderr])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (!UNREAD.has(error.code)) throw error;
  });

process.exitCode = await main(process.argv.slice(2));
// The channel to its supervisor would keep a process alive whose command has ended.
if (process.connected && process.env[PART_VARIABLE]) process.exit();
