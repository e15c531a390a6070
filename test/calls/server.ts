// One server process of several: says where it listens, and ends with its standard input.

import { startCallServer } from './support.ts';

const server = await startCallServer({ db2Url: process.env.DB2_URL ?? '' });
process.stdout.write(`${server.url}\n`);
process.stdin.resume().once('end', () => void server.stop());
